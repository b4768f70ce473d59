"""Workspaces with much in them, made quickly and through the services' own way of writing."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dittybag.domain.ports import Transaction
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Argument, Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import DEFAULT_USER, Task
from dittybag.storage.sqlite.store import SqliteStore

#: What is hard to keep: line ends, blanks, marks of formats, letters that have no lower case.
TEXTS = (
    "Say {{ what }} twice.\n",
    "no end of line",
    "\r\ncarriage\rreturns\r\n\r\n",
    "---\nid: not front matter\n---\n",
    "  leading and trailing blanks  \n\n\n",
    "\ufeffa mark at the beginning, ÄÖÜ ß İ 漢字 🎒 \u2028 \u0085 \x07\n",
    "<<<<<<< HEAD\nmine\n=======\nyours\n>>>>>>> theirs\n",
    "'quotes' \"double\" \\backslash\\ # no comment: {a: [b, c]} %TAG ! & * | > `x` @y\n",
)
NAMES = ("Case", "case", "CASE", "con", "nul.x", ".hidden", "-dash", "a.", "x" * 255, "CON.md", "..", "lpt1")


async def fill(path: Path, prompts: int, resources: int, tasks: int, *, seed: int = 1) -> None:
    """A database with so many things, each with two to three versions, some of them gone again."""
    dice = random.Random(seed)
    store = SqliteStore(str(path))
    try:
        for number in range(2):

            async def work(transaction: Transaction, number: int = number) -> None:
                await _fill(transaction, dice, (prompts // 2, resources // 2, tasks // 2), number)

            await store.write(work, actor=f"agent {number}\n\u2028")
    finally:
        await store.close()


async def _fill(
    transaction: Transaction, dice: random.Random, sizes: tuple[int, int, int], part: int
) -> None:
    prompts, resources, tasks = sizes
    clock = 1_700_000_000_000_000 + part * 10**12

    def times() -> dict[str, Any]:
        nonlocal clock
        clock += dice.randrange(3)
        return {"created_at": clock, "updated_at": clock}

    names = ("default", "Ünï/cødé: project?") if part else ("default", "side")
    projects = []
    for name in names:
        found = await transaction.projects.by_name(name)
        projects.append(found or await transaction.write("create", None, Project(id=0, name=name, **times())))
    for number in range(prompts):
        project = dice.choice(projects)
        assert project is not None
        label = NAMES[number] if number < len(NAMES) else f"prompt-{part}-{number}"
        if part and number < len(NAMES):
            label = f"{part}{label}"[:255]
        arguments = (Argument(name="what", description="a: b", required=True, choices=("one", "no, two")),)
        prompt = Prompt(
            number=0,
            id=transaction.new_id(),
            project=project.id,
            name=label,
            title=f"Title of {label[:150]}",
            description=dice.choice((None, "yes", "null", "two\nlines", "a: b # c", "'")),
            content=dice.choice(TEXTS) + f"{number} " * dice.randrange(1, 60),
            tags=tuple(dice.sample(("a", "no", "b-c", "1e5", "007"), dice.randrange(4))),
            arguments=arguments if number % 5 == 0 else (),
            **times(),
        )
        await _live(transaction, dice, prompt, lambda thing: {"content": thing.content + " more"}, times)
    for number in range(resources):
        project = dice.choice(projects)
        assert project is not None
        content = dice.randbytes(dice.randrange(0, 20_000)) if number % 2 else dice.choice(TEXTS).encode()
        resource = Resource(
            number=0,
            id=transaction.new_id(),
            project=project.id,
            name=f"resource-{part}-{number}",
            uri=f"file:///{part}/{number}" + ("/{name}" if number % 7 == 0 else ""),
            title=dice.choice((None, "A title: yes")),
            mime_type=dice.choice(
                ("image/png", "application/x-odd") if number % 2 else ("text/plain", "text/yaml")
            ),
            sha256=await transaction.store_content(content),
            size=len(content),
            **times(),
        )
        other = f"another {number}".encode()
        changed = {"sha256": await transaction.store_content(other), "size": len(other)}
        await _live(transaction, dice, resource, lambda thing, changed=changed: changed, times)
    for number in range(tasks):
        task = Task(
            id=0,
            user=DEFAULT_USER if number % 9 else "somebody else",
            title=dice.choice(("Buy milk", "Ünïcödé", "yes", "a: b #")) + f" {number}",
            project=dice.choice((None, *names)),
            priority=dice.randrange(1, 6),
            notes=dice.choice((None, *TEXTS)),
            due_date=dice.choice((None, "2026-03-01", "2026-03-01T17:00:00Z")),
            **times(),
        )
        await _live(transaction, dice, task, lambda thing: {"completed_at": thing.created_at + 7}, times)


async def _live(transaction: Transaction, dice: random.Random, thing: Any, change: Any, times: Any) -> None:
    """Create a thing, change it, and sometimes delete it, or bring it back."""
    thing = await transaction.write("create", None, thing)
    for _ in range(dice.randrange(1, 3)):
        later = times()["updated_at"]
        changed = replace(thing, **change(thing), updated_at=later, version=thing.version + 1)
        thing = await transaction.write("update", thing, changed)
    if dice.randrange(20) == 0:
        await transaction.write("delete", thing, None)
        if dice.randrange(2):
            await transaction.write("restore", None, replace(thing, version=thing.version + 1))
