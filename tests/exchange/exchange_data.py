"""Large workspaces with difficult content, written directly through transactions."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dittybag.domain.ports import Transaction
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Argument, Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import DEFAULT_USER, Comment, Task
from dittybag.storage.sqlite.sqlite_store import SqliteStore

#: Texts that are easily changed by accident: line endings, spaces, markup, unusual Unicode.
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


async def fill_database(path: Path, prompts: int, resources: int, tasks: int, *, seed: int = 1) -> None:
    """Create a database with entities that each have two or three versions; some are deleted."""
    rng = random.Random(seed)
    store = SqliteStore(str(path))
    try:
        for number in range(2):

            async def work(transaction: Transaction, number: int = number) -> None:
                await _write_part(transaction, rng, (prompts // 2, resources // 2, tasks // 2), number)

            await store.write(work, actor=f"agent {number}\n\u2028")
    finally:
        await store.close()


async def _write_part(
    transaction: Transaction, rng: random.Random, sizes: tuple[int, int, int], part: int
) -> None:
    prompts, resources, tasks = sizes
    clock = 1_700_000_000_000_000 + part * 10**12

    def times() -> dict[str, Any]:
        nonlocal clock
        clock += rng.randrange(3)
        return {"created_at": clock, "updated_at": clock}

    names = ("default", "Ünï/cødé: project?") if part else ("default", "side")
    projects = []
    for name in names:
        found = await transaction.projects.by_name(name)
        projects.append(found or await transaction.write("create", None, Project(id=0, name=name, **times())))
    for number in range(prompts):
        project = rng.choice(projects)
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
            title=("", " ", "\t", "Two\r\nlines: ", "\x1b\x85\u2028")[number % 5] + f"Title of {label[:150]}",
            description=rng.choice((None, "yes", "null", "two\nlines", "a: b # c", "'")),
            content=rng.choice(TEXTS) + f"{number} " * rng.randrange(1, 60),
            tags=tuple(rng.sample(("a", "no", "b-c", "1e5", "007"), rng.randrange(4))),
            arguments=arguments if number % 5 == 0 else (),
            **times(),
        )
        await _write_versions(
            transaction, rng, prompt, lambda entity: {"content": entity.content + " more"}, times
        )
    for number in range(resources):
        project = rng.choice(projects)
        assert project is not None
        content = rng.randbytes(rng.randrange(0, 20_000)) if number % 2 else rng.choice(TEXTS).encode()
        resource = Resource(
            number=0,
            id=transaction.new_id(),
            project=project.id,
            name=f"resource-{part}-{number}",
            uri=f"file:///{part}/{number}" + ("/{name}" if number % 7 == 0 else ""),
            title=rng.choice((None, "A title: yes")),
            mime_type=rng.choice(
                ("image/png", "application/x-odd") if number % 2 else ("text/plain", "text/yaml")
            ),
            sha256=await transaction.store_content(content),
            size=len(content),
            **times(),
        )
        other = f"another {number}".encode()
        changed = {"sha256": await transaction.store_content(other), "size": len(other)}
        await _write_versions(transaction, rng, resource, lambda entity, changed=changed: changed, times)
    #: Tasks with parts. No other task waits for them, so that there are no cycles.
    wholes: list[int] = []
    others: list[int] = []
    for number in range(tasks):
        named = rng.choice((None, *names))
        shared = [project.id for project in projects if project is not None and project.name == named]
        earlier = others[-20:]
        task = Task(
            id=0,
            user=DEFAULT_USER if number % 9 else "somebody else",
            title=rng.choice(("Buy milk", "Ünïcödé", "yes", "a: b #")) + f" {number}",
            project=named,
            project_id=rng.choice((None, *shared)),
            priority=rng.randrange(1, 6),
            notes=rng.choice((None, *TEXTS)),
            due_date=rng.choice((None, "2026-03-01", "2026-03-01T17:00:00Z")),
            status=rng.choice(("todo", "doing", "review", "dropped")),
            blocked_by=tuple(rng.sample(earlier, min(len(earlier), rng.randrange(4)))),
            parent=rng.choice((None, *wholes[-5:])),
            assignee=rng.choice((None, "ann", "yes", "agent: 7 #")),
            labels=tuple(rng.sample(("a", "no", "Ünï: #", "1e5", "007"), rng.randrange(4))),
            links=tuple(rng.sample(("greeting", "file:///1/2", "https://example.org/?a=b#c"), number % 3)),
            comments=tuple(
                Comment(clock + at, f"agent {at}\n\u2028", rng.choice(TEXTS)) for at in range(number % 4)
            ),
            **times(),
        )
        written = await _write_versions(transaction, rng, task, _task_change(rng), times)
        (others if number % 7 else wholes).append(written.id)
    await _block_wholes(transaction, wholes)


def _task_change(rng: random.Random) -> Callable[[Task], dict[str, Any]]:
    kind = rng.randrange(3)

    def change(task: Task) -> dict[str, Any]:
        if kind:
            return {"completed_at": task.created_at + 7, "status": "done"}
        return {"blocked_by": task.blocked_by[1:], "assignee": "someone else"}

    return change


async def _block_wholes(transaction: Transaction, wholes: Sequence[int]) -> None:
    """Let the tasks with parts wait for one of them, so that they refer to later tasks."""
    for number in wholes:
        task = await transaction.find("task", id=number)
        part = await transaction.find("task", parent=number)
        if task is not None and part is not None:
            await transaction.write(
                "update", task, replace(task, blocked_by=(part.id,), version=task.version + 1)
            )


async def _write_versions(
    transaction: Transaction, rng: random.Random, entity: Any, change: Any, times: Any
) -> Any:
    """Create an entity, update it, and sometimes delete or restore it. Returns its last state."""
    entity = await transaction.write("create", None, entity)
    for _ in range(rng.randrange(1, 3)):
        later = times()["updated_at"]
        changed = replace(entity, **change(entity), updated_at=later, version=entity.version + 1)
        entity = await transaction.write("update", entity, changed)
    if rng.randrange(20) == 0:
        await transaction.write("delete", entity, None)
        if rng.randrange(2):
            await transaction.write("restore", None, replace(entity, version=entity.version + 1))
    return entity
