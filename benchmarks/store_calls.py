"""Calls to a full store over stdio, as a client sees them."""

from __future__ import annotations

import itertools
import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from benchmarks.report_output import tell
from benchmarks.sample_data import (
    COMMON_WORD,
    FREQUENT_PAIR,
    PROJECTS,
    RARE,
    RARE_PAIR,
    RARE_WORDS,
    UNCOMMON_WORD,
    VERY_COMMON_WORD,
    Draft,
    Writing,
)
from benchmarks.stdio_client import Connection, ServerFailed

#: How many creates are under way at once when they are pipelined.
AT_ONCE: Final = 32

#: A server that takes longer than this for an answer is stuck.
_PATIENCE_SECONDS: Final = 60.0

_ANSWER: Final = b'{"jsonrpc":"2.0","id":'
_INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


class Effort(Struct, frozen=True):
    """How much is measured."""

    spawns: int
    rounds: int
    #: How often each call is made in a round, unless that takes longer than the seconds.
    calls: int
    seconds: float
    #: One by one in a round, and as many times `AT_ONCE` at once.
    creates: int
    pipelines: int


FULL: Final = Effort(spawns=21, rounds=10, calls=40, seconds=0.4, creates=100, pipelines=4)
QUICK: Final = Effort(spawns=7, rounds=3, calls=10, seconds=0.2, creates=20, pipelines=2)
#: So many are always made in a round, however slow they are.
FEWEST_CALLS: Final = 3


class Request(Struct, frozen=True):
    """A method and its parameters."""

    method: str
    params: dict[str, Any]


def tool(name: str, **arguments: Any) -> Request:
    return Request("tools/call", {"name": name, "arguments": arguments})


class Session(Connection):
    """A connection to a Dittybag, whose answers come in any order and between notifications."""

    def __init__(self, database: Path, home: Path | None = None) -> None:
        """`home`: where libraries are; nobody's own ones are served."""
        command = (sys.executable, "-m", "dittybag", "serve", "--db", str(database))
        super().__init__(command, {"DITTYBAG_HOME": str(home or database.parent)})
        self._ids = itertools.count(1)
        self._unread = b""
        self._others: list[bytes] = []
        self._poll = select.poll()
        self._poll.register(self._from, select.POLLIN)

    def greet(self) -> None:
        super().greet()
        os.write(self._to, _INITIALIZED)

    def ask(self, request: Request) -> Any:
        """The result of one request."""
        _, (answer,) = self.timed([request])
        return result_of(answer)

    def timed(self, requests: Sequence[Request]) -> tuple[float, list[bytes]]:
        """Make requests all at once; the seconds until the last was answered, and the answers."""
        frames = b"".join(self._frame(request) for request in requests)
        start = time.perf_counter()
        try:
            os.write(self._to, frames)
        except BrokenPipeError:
            raise self._failure("the server ended") from None
        answers = self._answers(len(requests))
        return time.perf_counter() - start, answers

    def notified(self, words: bytes) -> int:
        """How many messages with these words have come between the answers since the last time."""
        others, self._others = self._others, []
        return sum(words in line for line in others)

    def _frame(self, request: Request) -> bytes:
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": request.method, "params": request.params}
        return msgspec.json.encode(body) + b"\n"

    def _answers(self, count: int) -> list[bytes]:
        found: list[bytes] = []
        while True:
            *lines, self._unread = self._unread.split(b"\n")
            found += [line for line in lines if line.startswith(_ANSWER)]
            self._others += [line for line in lines if not line.startswith(_ANSWER)]
            if len(found) >= count:
                return found
            self._unread += self._to_end_of_line()

    def _to_end_of_line(self) -> bytes:
        chunks: list[bytes] = []
        while not chunks or b"\n" not in chunks[-1]:
            if not self._poll.poll(_PATIENCE_SECONDS * 1000):
                raise self._failure("the server is stuck")
            chunks.append(self._read())
        return b"".join(chunks)


def result_of(answer: bytes) -> Any:
    """What a request was answered with, unless that is an error."""
    message = msgspec.json.decode(answer)
    result = message.get("result")
    if result is None or result.get("isError"):
        raise ServerFailed(f"unexpected answer: {answer[:500]!r}")
    return result


def add_prompt(draft: Draft) -> Request:
    return tool("add_prompt", title=draft.title, content=draft.content)


class Call(Struct):
    """A kind of call, and how long it took each time."""

    title: str
    #: Made in turn.
    requests: list[Request]
    #: In seconds.
    bar: float | None = None
    #: How many things it has to find.
    expected: int | None = None
    #: Make a change before each.
    after_change: bool = False
    found: int | None = None
    samples: list[float] = field(default_factory=list)

    def note(self, seconds: float, answer: bytes) -> None:
        self.samples.append(seconds)
        self.found = number_found(result_of(answer))
        if self.expected is not None and self.found != self.expected:
            raise ServerFailed(f"{self.title}: found {self.found}, not {self.expected}")


def number_found(result: Any) -> int | None:
    """How many things an answer is about, if it is a list or a count."""
    shown = result.get("structuredContent", result)
    listed = shown.get("tasks", shown.get("prompts"))
    total = shown.get("total", None if listed is None else len(listed))
    return None if total is None else int(total)


PAGE_BAR: Final = 0.010
RARE_BAR: Final = 0.010
COMMON_BAR: Final = 0.050


def calls(items: int, ids: Sequence[str]) -> list[Call]:
    """What is asked of a store with so many prompts, some of which have these ids, and as many tasks."""
    last = max(0, items - 10)
    first_page = [Request("prompts/list", {})]
    return [
        Call(
            "search_prompts, rare word",
            [tool("search_prompts", query=word) for word in RARE_WORDS],
            RARE_BAR,
            min(RARE, items),
        ),
        Call(
            "search_prompts, one in a hundred",
            [tool("search_prompts", query=UNCOMMON_WORD)],
            None,
            items // 100,
        ),
        Call(
            "search_prompts, common word",
            [tool("search_prompts", query=COMMON_WORD)],
            COMMON_BAR,
            items // 10,
        ),
        Call(
            "search_prompts, common word, last page",
            [tool("search_prompts", query=COMMON_WORD, offset=max(0, items // 10 - 10))],
            COMMON_BAR,
            items // 10,
        ),
        Call(
            "search_prompts, very common word",
            [tool("search_prompts", query=VERY_COMMON_WORD)],
            None,
            items * 3 // 10,
        ),
        Call(
            "search_prompts, rare two letters",
            [tool("search_prompts", query=RARE_PAIR)],
            None,
            min(RARE, items),
        ),
        Call("search_prompts, frequent two letters", [tool("search_prompts", query=FREQUENT_PAIR)]),
        Call("search (everything), rare word", [tool("search", query=word) for word in RARE_WORDS]),
        Call("list_prompts, first page", [tool("list_prompts")], PAGE_BAR),
        Call("list_prompts, last page", [tool("list_prompts", offset=last)], PAGE_BAR),
        Call("filter_by_tags, one tag", [tool("filter_by_tags", tags=["review"])], PAGE_BAR),
        Call("filter_by_tags, two tags", [tool("filter_by_tags", tags=["review", "draft"])], PAGE_BAR),
        Call("list_tags", [tool("list_tags")]),
        Call("get_prompt", [tool("get_prompt", id=known) for known in ids]),
        Call("task_list, project", [tool("task_list", project=PROJECTS[3])], PAGE_BAR),
        Call("task_list, priority", [tool("task_list", priority=2)], PAGE_BAR),
        Call(
            "task_list, project and priority", [tool("task_list", project=PROJECTS[3], priority=2)], PAGE_BAR
        ),
        Call("task_list, last page", [tool("task_list", show_completed=True, offset=items - 100)], PAGE_BAR),
        Call(
            "task_search, rare word",
            [tool("task_search", query=word) for word in RARE_WORDS],
            RARE_BAR,
            min(RARE, items),
        ),
        # All matches are in one answer, and those of a common word do not fit in it.
        Call("task_search, one in a hundred", [tool("task_search", query=UNCOMMON_WORD)], None, items // 100),
        Call("task_stats", [tool("task_stats")], None, items),
        Call("list_changes", [tool("list_changes")], PAGE_BAR),
        Call("list_changes, one kind", [tool("list_changes", kind="task")], PAGE_BAR),
        Call("prompts/list, after a change", first_page, after_change=True),
        Call("prompts/list, unchanged", first_page, PAGE_BAR),
        Call("ping: the wire alone", [Request("ping", {})]),
    ]


def measure_calls(database: Path, items: int, effort: Effort) -> tuple[list[Call], int]:
    """All calls, in turns, and the memory of the server after them."""
    writing = Writing("changes")
    with Session(database) as session:
        session.greet()
        page = session.ask(tool("list_prompts", limit=100, offset=items // 2))["structuredContent"]
        chosen = calls(items, [prompt["id"] for prompt in page["prompts"]])
        for number in range(effort.rounds):
            tell(f"Calls {number + 1} of {effort.rounds} ...")
            for call in chosen:
                _make(session, call, effort, writing)
        return chosen, session.memory()


def _make(session: Session, call: Call, effort: Effort, writing: Writing) -> None:
    """Make a call as often as the effort asks for."""
    end = time.perf_counter() + effort.seconds
    requests = itertools.cycle(call.requests)
    for number in range(effort.calls):
        if number >= FEWEST_CALLS and time.perf_counter() > end:
            return
        if call.after_change:
            session.ask(add_prompt(renamed(writing.draft(), "changed")))
        seconds, (answer,) = session.timed([next(requests)])
        call.note(seconds, answer)


def renamed(draft: Draft, prefix: str) -> Draft:
    """Titles are unique, and each supply of text counts from one."""
    return msgspec.structs.replace(draft, title=f"{prefix} {draft.title}")


#: Creates prompts, and returns the samples of it.
Run = Callable[[Sequence[Draft]], list[float]]
