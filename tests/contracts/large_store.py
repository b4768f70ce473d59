"""A store with many items whose texts are as long and as awkward as allowed, and random calls on it."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.ports import Transaction
from dittybag.domain.prompts import Argument
from dittybag.services.caller import Caller
from dittybag.services.prompt_service import PromptDraft, create_prompt
from dittybag.services.resource_service import create_resource
from dittybag.services.task_service import create_task
from dittybag.storage.sqlite.sqlite_store import SqliteStore

WORDS: Final = (
    *("sprint", "review", "release", "bank", "über", "日本語", "naïve", "deploy", "sprint-plan"),
    *('QUOTE"', "back\\slash", "👩\u200d👧", "e\u0301"),
)
_CALLER: Final = Caller(1, 'filler "quoted" \\ 👩\u200d👧', interface="mcp")
#: Items that are created at the same time, and those of them that are one change to undo.
_AT_ONCE: Final = 2_000
_BATCH: Final = 5
_CONTENTS: Final = (b"\x89PNG\r\n\x1a\n" + bytes(200), b"%PDF-" + bytes(40_000), b"ID3" + bytes(50))
_BINARY_TYPES: Final = ("image/png", "application/pdf", "audio/mpeg")


def word(random: Random) -> str:
    """Return one of a few words that occur in many texts, or one of many others."""
    return random.choice(WORDS) if random.random() < 0.2 else f"word{random.randrange(5000)}"


def words(random: Random, most: int) -> str:
    return " ".join(word(random) for _ in range(random.randint(1, most)))


def text(random: Random, most: int) -> str:
    """Return a text of many short words, or rarely one that needs many escapes."""
    if random.random() < 0.05:
        return random.choice(('"', "\\", "\x01", "👩\u200d👧", "e\u0301", "\n")) * (most // 3)
    return words(random, max(most // 8, 1))[:most]


def fill(database: Path, count: int, random: Random) -> None:
    """Create a store with `count` prompts, resources and tasks."""

    async def run() -> None:
        store = SqliteStore(str(database))
        for start in range(0, count, _AT_ONCE):
            works = [
                partial(_create, numbers=range(first, first + _BATCH), random=random)
                for first in range(start, min(start + _AT_ONCE, count), _BATCH)
            ]
            await asyncio.gather(*(store.write(work, actor=_CALLER.actor) for work in works))
        await store.close()

    asyncio.run(run())


async def _create(transaction: Transaction, numbers: range, random: Random) -> None:
    for number in numbers:
        kind = number % 5
        if kind < 2:
            await create_prompt(transaction, _CALLER, _prompt(number, random))
        elif kind == 2:
            fields, data = _resource(number, random)
            await create_resource(transaction, _CALLER, fields, data)
        else:
            await create_task(transaction, _CALLER, **_task(number, random))


def _prompt(number: int, random: Random) -> PromptDraft:
    is_long = random.random() < 0.02
    arguments = tuple(
        Argument(
            name=f"a{index}_{'x' * (90 if is_long else 0)}", description=text(random, 4000 if is_long else 20)
        )
        for index in range(50 if is_long else random.randint(0, 2))
    )
    fields = {
        "content": text(random, 50_000 if is_long else 300)
        + "".join(f" {{{{ {item.name} }}}}" for item in arguments),
        "description": text(random, 4000 if is_long else 40),
        "tags": [f"tag-{index}-{'t' * (40 if is_long else 0)}" for index in range(50 if is_long else 2)],
        "arguments": arguments,
    }
    title = (f"{number} " + text(random, 190 if is_long else 40))[:200]
    return PromptDraft(
        f"prompt-{number}", title, ENTITY_TYPES["prompt"].normalise(fields), f"prompt-{number}"
    )


def _resource(number: int, random: Random) -> tuple[dict[str, Any], bytes]:
    is_binary = random.random() < 0.1
    chosen = random.randrange(3)
    uri = f"file:///{number}/" + ("x" * 2_020 if random.random() < 0.05 else "notes")
    fields = {
        "name": f"resource-{number}" + ("n" * 230 if random.random() < 0.05 else ""),
        "uri": uri,
        "mime_type": _BINARY_TYPES[chosen] if is_binary else "text/plain",
        "title": words(random, 20)[:200],
        "description": text(random, 4000 if random.random() < 0.05 else 40),
    }
    content = (
        _CONTENTS[chosen] if is_binary else text(random, 60_000 if random.random() < 0.02 else 300).encode()
    )
    return ENTITY_TYPES["resource"].normalise(fields), content


def _task(number: int, random: Random) -> dict[str, Any]:
    return {
        "title": (f"Task {number} " + words(random, 120 if random.random() < 0.05 else 6))[:500],
        "project": random.choice(("alpha", '"' * 100, None)),
        "priority": random.randint(1, 5),
        "time_estimate": random.choice(("1hr", "\\" * 50)),
        "notes": text(random, 100_000 if random.random() < 0.01 else 500),
        "due_date": random.choice((None, "2026-12-24", "2027-01-01T10:00:00Z")),
    }


class RandomCalls:
    """Random calls of all tools: valid ones, invalid ones, and any sizes."""

    def __init__(self, random: Random, count: int) -> None:
        self._random = random
        self._count = count

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        makers = [getattr(self, name) for name in dir(self) if name.startswith("call_")]
        while True:
            make = self._random.choice(makers)
            arguments = {name: value for name, value in make().items() if value is not ...}
            yield make.__name__.removeprefix("call_"), arguments

    def _maybe(self, *values: Any) -> Any:
        """Return one of the values, or usually nothing."""
        return self._random.choice(values) if self._random.random() < 0.3 else ...

    def _ref(self) -> str:
        number = self._random.randrange(self._count)
        return self._random.choice(
            (
                f"prompt-{number - number % 5}",
                f"prompt-{number - number % 5 + 1}",
                f"file:///{number - number % 5 + 2}/notes",
                f"resource-{number - number % 5 + 2}",
                f"task:{number % (self._count * 2 // 5) + 1}",
                f"change:{number + 1}",
                f"resource:file:///{number - number % 5 + 2}/" + "x" * 2_020,
                words(self._random, 40),
                f"promt-{number}",
            )
        )

    def _offset(self) -> Any:
        return self._maybe(0, 1, self._random.randrange(100), self._random.randrange(100_000), -1, 1 << 70)

    def _tokens(self) -> Any:
        return self._maybe(1000, 1001, 2000, self._random.randrange(1000, 100_000), 100_000)

    def call_search(self) -> dict[str, Any]:
        return {
            "query": self._random.choice(
                (words(self._random, 4), f'"{words(self._random, 2)}"', "", "x" * 2000)
            ),
            "kinds": self._maybe(["task"], ["prompt", "library_prompt"], ["resource"], [], ["tag"]),
            "limit": self._maybe(1, 50, 100, 101),
            "offset": self._offset(),
        }

    def call_read(self) -> dict[str, Any]:
        return {"ref": self._ref(), "offset": self._offset(), "max_tokens": self._tokens()}

    def call_use_prompt(self) -> dict[str, Any]:
        values = {f"a{index}": text(self._random, 20_000) for index in range(self._random.randint(0, 2))}
        return {
            "ref": self._ref(),
            "arguments": self._maybe(values, {}),
            "offset": self._offset(),
            "max_tokens": self._tokens(),
        }

    def call_task_list(self) -> dict[str, Any]:
        return {
            "project": self._maybe("alpha", '"' * 100, "(no project)", "", None),
            "priority": self._maybe(1, 5, 9),
            "due_by": self._maybe("tomorrow", "2026-12-25", "whenever"),
            "done": self._maybe(True, False),
            "order": self._maybe("priority", "due", "newest"),
            "limit": self._maybe(1, 50, 200, 201),
            "offset": self._offset(),
        }

    def call_history(self) -> dict[str, Any]:
        return {
            "ref": self._maybe(self._ref()),
            "kind": self._maybe("prompt", "resource", "task", "project"),
            "actor": self._maybe("filler", words(self._random, 3)),
            "limit": self._maybe(1, 100, 101),
            "before": self._maybe(1, self._random.randrange(1, self._count), 1 << 62),
        }

    def call_save_prompt(self) -> dict[str, Any]:
        number = self._random.randrange(self._count)
        return {
            "name": self._random.choice((f"prompt-{number}", "saved", "in valid", "n" * 300)),
            "content": self._random.choice((text(self._random, 2000), "Hello {{ who }}", "{{ a", "")),
            "tags": self._maybe(["a b"] * 60, ["a", "b"], [f"tag {n}" for n in range(40)]),
            "arguments": self._maybe([{"name": "who"}], [{"nam": 1}] * 30, [{"name": "x" * 200}] * 60),
            "description": self._maybe(text(self._random, 4000)),
            "if_version": self._maybe(0, 1),
            "w" * self._random.randint(1, 500): self._maybe(1),
        }

    def call_save_resource(self) -> dict[str, Any]:
        number = self._random.randrange(self._count)
        return {
            "uri": self._random.choice(
                (f"file:///{number}/notes", "file:///saved", "no uri", "x:" + "y" * 3000)
            ),
            "content": self._maybe(text(self._random, 3000)),
            "base64": self._maybe(b64encode(self._random.choice(_CONTENTS)).decode(), "?"),
            "title": self._maybe(text(self._random, 300)),
            "mime_type": self._maybe("text/plain", "image/png", "nonsense"),
        }

    def call_delete(self) -> dict[str, Any]:
        return {"ref": self._ref()}

    def call_task_add(self) -> dict[str, Any]:
        task = {"title": text(self._random, 490), "notes": text(self._random, 1000)}
        bad = {"titel": "x" * 1000, "due_date": "x" * 1000, "priority": 99, "y" * 1000: 1}
        return {
            "tasks": self._random.choice(
                ([task], [task] * 100, [bad] * 100, [task] * 101, "x", [], ["x"] * 50)
            )
        }

    def call_task_update(self) -> dict[str, Any]:
        return {
            "ref": self._ref(),
            "title": self._maybe(words(self._random, 5), "x" * 600),
            "done": self._maybe(True, False),
            "due_date": self._maybe("fri", None, "x" * 500),
            "notes": self._maybe(text(self._random, 5000), ""),
        }

    def call_undo(self) -> dict[str, Any]:
        return {"ref": self._ref(), "force": self._maybe(True)}
