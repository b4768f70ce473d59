"""Measures calls to a full store over stdio, as a client sees them."""

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

from benchmarks.report_output import print_progress
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
    TextGenerator,
)
from benchmarks.stdio_client import ServerFailed, StdioServer

#: The number of concurrent creates.
CONCURRENT: Final = 32

#: Timeout for a response.
_TIMEOUT_SECONDS: Final = 60.0

_RESPONSE: Final = b'{"jsonrpc":"2.0","id":'
_INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


class StoreSampling(Struct, frozen=True):
    """The number and length of the measurements."""

    spawns: int
    rounds: int
    #: The maximum number of repetitions of each call in a round, and their maximum seconds.
    calls: int
    seconds: float
    #: Sequential creates in a round, and concurrent batches of `CONCURRENT` creates.
    creates: int
    batches: int


FULL: Final = StoreSampling(spawns=21, rounds=10, calls=40, seconds=0.4, creates=100, batches=4)
QUICK: Final = StoreSampling(spawns=7, rounds=3, calls=10, seconds=0.2, creates=20, batches=2)
#: The minimum number of repetitions in a round.
MIN_CALLS: Final = 3


class McpRequest(Struct, frozen=True):
    """A method and its parameters."""

    method: str
    params: dict[str, Any]


def tool_call(name: str, **arguments: Any) -> McpRequest:
    return McpRequest("tools/call", {"name": name, "arguments": arguments})


class DittybagSession(StdioServer):
    """A session with Dittybag. Responses may arrive in any order and between notifications."""

    def __init__(self, database: Path, home: Path | None = None) -> None:
        """`home`: the data folder with the libraries, by default the database's folder."""
        command = (sys.executable, "-m", "dittybag", "serve", "--db", str(database))
        super().__init__(command, {"DITTYBAG_HOME": str(home or database.parent)})
        self._ids = itertools.count(1)
        self._unread = b""
        self._others: list[bytes] = []
        self._poll = select.poll()
        self._poll.register(self._from, select.POLLIN)

    def initialize(self) -> None:
        super().initialize()
        os.write(self._to, _INITIALIZED)

    def request_result(self, request: McpRequest) -> Any:
        """Send one request and return its result."""
        _, (response,) = self.time_requests([request])
        return result_of(response)

    def time_requests(self, requests: Sequence[McpRequest]) -> tuple[float, list[bytes]]:
        """Send requests at once. Returns the seconds until the last response, and the responses."""
        frames = b"".join(self._frame(request) for request in requests)
        start = time.perf_counter()
        try:
            os.write(self._to, frames)
        except BrokenPipeError:
            raise self._failure("the server ended") from None
        responses = self._read_responses(len(requests))
        return time.perf_counter() - start, responses

    def count_notifications(self, text: bytes) -> int:
        """Return how many notifications containing `text` have arrived since the last call."""
        others, self._others = self._others, []
        return sum(text in line for line in others)

    def _frame(self, request: McpRequest) -> bytes:
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": request.method, "params": request.params}
        return msgspec.json.encode(body) + b"\n"

    def _read_responses(self, count: int) -> list[bytes]:
        found: list[bytes] = []
        while True:
            *lines, self._unread = self._unread.split(b"\n")
            found += [line for line in lines if line.startswith(_RESPONSE)]
            self._others += [line for line in lines if not line.startswith(_RESPONSE)]
            if len(found) >= count:
                return found
            self._unread += self._to_end_of_line()

    def _to_end_of_line(self) -> bytes:
        chunks: list[bytes] = []
        while not chunks or b"\n" not in chunks[-1]:
            if not self._poll.poll(_TIMEOUT_SECONDS * 1000):
                raise self._failure("the server did not respond")
            chunks.append(self._read())
        return b"".join(chunks)


def result_of(response: bytes) -> Any:
    """Return the result of a response. Raises `ServerFailed` for an error."""
    message = msgspec.json.decode(response)
    result = message.get("result")
    if result is None or result.get("isError"):
        raise ServerFailed(f"unexpected response: {response[:500]!r}")
    return result


def add_prompt(draft: Draft) -> McpRequest:
    return tool_call("add_prompt", title=draft.title, content=draft.content)


class TimedCall(Struct):
    """A kind of call, with its samples."""

    title: str
    #: The requests, in turn.
    requests: list[McpRequest]
    #: The maximum median, in seconds.
    target: float | None = None
    #: The number of entities that it must find.
    expected: int | None = None
    #: Whether to make a change before each call.
    after_change: bool = False
    found: int | None = None
    samples: list[float] = field(default_factory=list)

    def record(self, seconds: float, response: bytes) -> None:
        self.samples.append(seconds)
        self.found = result_count(result_of(response))
        if self.expected is not None and self.found != self.expected:
            raise ServerFailed(f"{self.title}: found {self.found}, expected {self.expected}")


def result_count(result: Any) -> int | None:
    """Return the number of entities in a result, if it is a list or a count."""
    shown = result.get("structuredContent", result)
    listed = shown.get("tasks", shown.get("prompts"))
    total = shown.get("total", None if listed is None else len(listed))
    return None if total is None else int(total)


PAGE_TARGET: Final = 0.010
RARE_TARGET: Final = 0.010
COMMON_TARGET: Final = 0.050


def calls(items: int, ids: Sequence[str]) -> list[TimedCall]:
    """Return the calls for a store with `items` prompts and `items` tasks. `ids`: some of the prompts."""
    last = max(0, items - 10)
    first_page = [McpRequest("prompts/list", {})]
    return [
        TimedCall(
            "search_prompts, rare word",
            [tool_call("search_prompts", query=word) for word in RARE_WORDS],
            RARE_TARGET,
            min(RARE, items),
        ),
        TimedCall(
            "search_prompts, one in a hundred",
            [tool_call("search_prompts", query=UNCOMMON_WORD)],
            None,
            items // 100,
        ),
        TimedCall(
            "search_prompts, common word",
            [tool_call("search_prompts", query=COMMON_WORD)],
            COMMON_TARGET,
            items // 10,
        ),
        TimedCall(
            "search_prompts, common word, last page",
            [tool_call("search_prompts", query=COMMON_WORD, offset=max(0, items // 10 - 10))],
            COMMON_TARGET,
            items // 10,
        ),
        TimedCall(
            "search_prompts, very common word",
            [tool_call("search_prompts", query=VERY_COMMON_WORD)],
            None,
            items * 3 // 10,
        ),
        TimedCall(
            "search_prompts, rare two letters",
            [tool_call("search_prompts", query=RARE_PAIR)],
            None,
            min(RARE, items),
        ),
        TimedCall("search_prompts, frequent two letters", [tool_call("search_prompts", query=FREQUENT_PAIR)]),
        TimedCall("search (everything), rare word", [tool_call("search", query=word) for word in RARE_WORDS]),
        TimedCall("list_prompts, first page", [tool_call("list_prompts")], PAGE_TARGET),
        TimedCall("list_prompts, last page", [tool_call("list_prompts", offset=last)], PAGE_TARGET),
        TimedCall("filter_by_tags, one tag", [tool_call("filter_by_tags", tags=["review"])], PAGE_TARGET),
        TimedCall(
            "filter_by_tags, two tags", [tool_call("filter_by_tags", tags=["review", "draft"])], PAGE_TARGET
        ),
        TimedCall("list_tags", [tool_call("list_tags")]),
        TimedCall("get_prompt", [tool_call("get_prompt", id=known) for known in ids]),
        TimedCall("task_list, project", [tool_call("task_list", project=PROJECTS[3])], PAGE_TARGET),
        TimedCall("task_list, priority", [tool_call("task_list", priority=2)], PAGE_TARGET),
        TimedCall(
            "task_list, project and priority",
            [tool_call("task_list", project=PROJECTS[3], priority=2)],
            PAGE_TARGET,
        ),
        TimedCall(
            "task_list, last page",
            [tool_call("task_list", show_completed=True, offset=items - 100)],
            PAGE_TARGET,
        ),
        TimedCall(
            "task_search, rare word",
            [tool_call("task_search", query=word) for word in RARE_WORDS],
            RARE_TARGET,
            min(RARE, items),
        ),
        # One result contains all matches; those of a common word would exceed its maximum size.
        TimedCall(
            "task_search, one in a hundred",
            [tool_call("task_search", query=UNCOMMON_WORD)],
            None,
            items // 100,
        ),
        TimedCall("task_stats", [tool_call("task_stats")], None, items),
        TimedCall("list_changes", [tool_call("list_changes")], PAGE_TARGET),
        TimedCall("list_changes, one kind", [tool_call("list_changes", kind="task")], PAGE_TARGET),
        TimedCall("prompts/list, after a change", first_page, after_change=True),
        TimedCall("prompts/list, unchanged", first_page, PAGE_TARGET),
        TimedCall("ping", [McpRequest("ping", {})]),
    ]


def measure_calls(database: Path, items: int, sampling: StoreSampling) -> tuple[list[TimedCall], int]:
    """Measure all calls in turns. Returns them and the server's memory afterwards."""
    generator = TextGenerator("changes")
    with DittybagSession(database) as session:
        session.initialize()
        page = session.request_result(tool_call("list_prompts", limit=100, offset=items // 2))[
            "structuredContent"
        ]
        chosen = calls(items, [prompt["id"] for prompt in page["prompts"]])
        for number in range(sampling.rounds):
            print_progress(f"Calls {number + 1} of {sampling.rounds} ...")
            for call in chosen:
                _run_call(session, call, sampling, generator)
        return chosen, session.memory()


def _run_call(
    session: DittybagSession, call: TimedCall, sampling: StoreSampling, generator: TextGenerator
) -> None:
    """Repeat a call as often as the sampling allows."""
    end = time.perf_counter() + sampling.seconds
    requests = itertools.cycle(call.requests)
    for number in range(sampling.calls):
        if number >= MIN_CALLS and time.perf_counter() > end:
            return
        if call.after_change:
            session.request_result(add_prompt(with_title_prefix(generator.draft(), "changed")))
        seconds, (response,) = session.time_requests([next(requests)])
        call.record(seconds, response)


def with_title_prefix(draft: Draft, prefix: str) -> Draft:
    """Return the draft with a prefix in its title: titles are unique, and every generator counts from one."""
    return msgspec.structs.replace(draft, title=f"{prefix} {draft.title}")


#: A function that creates prompts and returns the samples.
CreatePrompts = Callable[[Sequence[Draft]], list[float]]
