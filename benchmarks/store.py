"""A full store on stdio, beside a bare insert into SQLite: `python -m benchmarks.store`.

What is compared is measured in turns, so that a change of the machine's pace meets all of it. Every answer is
checked. The files are copies of a workspace that is built once (see `benchmarks.workspaces`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import platform
import select
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from benchmarks.client import Connection, ServerFailed
from benchmarks.workspaces import (
    CACHE,
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
    bare_connection,
    copied,
    prepare,
)
from satchel.domain.names import name_from
from satchel.services.caller import Caller
from satchel.services.workspace import Workspace
from satchel.storage.sqlite.store import SqliteStore

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
    """A connection to a Satchel, whose answers come in any order and between notifications."""

    def __init__(self, database: Path) -> None:
        super().__init__((sys.executable, "-m", "satchel", "serve", "--db", str(database)))
        self._ids = itertools.count(1)
        self._unread = b""
        self._poll = select.poll()
        self._poll.register(self._from, select.POLLIN)

    def greet(self) -> None:
        super().greet()
        os.write(self._to, _INITIALIZED)

    def ask(self, request: Request) -> Any:
        """The result of one request."""
        _, (answer,) = self.timed([request])
        return _result(answer)

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

    def _frame(self, request: Request) -> bytes:
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": request.method, "params": request.params}
        return msgspec.json.encode(body) + b"\n"

    def _answers(self, count: int) -> list[bytes]:
        found: list[bytes] = []
        while True:
            *lines, self._unread = self._unread.split(b"\n")
            found += [line for line in lines if line.startswith(_ANSWER)]
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


def _result(answer: bytes) -> Any:
    """What a request was answered with, unless that is an error."""
    message = msgspec.json.decode(answer)
    result = message.get("result")
    if result is None or result.get("isError"):
        raise ServerFailed(f"unexpected answer: {answer[:500]!r}")
    return result


def add_prompt(draft: Draft) -> Request:
    return tool("add_prompt", title=draft.title, content=draft.content, tags=draft.tags)


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
        self.found = _found(_result(answer))
        if self.expected is not None and self.found != self.expected:
            raise ServerFailed(f"{self.title}: found {self.found}, not {self.expected}")


def _found(result: Any) -> int | None:
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
            _tell(f"Calls {number + 1} of {effort.rounds} ...")
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
            session.ask(add_prompt(_renamed(writing.draft(), "changed")))
        seconds, (answer,) = session.timed([next(requests)])
        call.note(seconds, answer)


def _renamed(draft: Draft, prefix: str) -> Draft:
    """Titles are unique, and each supply of text counts from one."""
    return msgspec.structs.replace(draft, title=f"{prefix} {draft.title}")


#: Creates prompts, and returns the samples of it.
Run = Callable[[Sequence[Draft]], list[float]]


class Creates(Struct):
    """One way to create prompts."""

    title: str
    run: Run
    at_once: bool = False
    #: Seconds per prompt. Those at once are one sample, of what each of them took of the whole time.
    samples: list[float] = field(default_factory=list)


BARE: Final = "bare"
BARE_AT_ONCE: Final = "bare_at_once"
SERVICE: Final = "service"
SERVICE_AT_ONCE: Final = "service_at_once"
STDIO: Final = "stdio"
STDIO_AT_ONCE: Final = "stdio_at_once"


def measure_creates(workspace: Path, bare: Path, folder: Path, effort: Effort) -> dict[str, Creates]:
    """All ways to create prompts, in turns, each on a file of its own."""
    writing = Writing("creates")
    with contextlib.ExitStack() as stack:
        sources = {BARE: bare, BARE_AT_ONCE: bare, SERVICE: workspace, STDIO: workspace}
        files = {name: stack.enter_context(copied(source, folder, name)) for name, source in sources.items()}
        session = stack.enter_context(Session(files[STDIO]))
        session.greet()
        one_by_one, together = stack.enter_context(_service(files[SERVICE]))
        ways = {
            BARE: Creates("floor: a bare insert", stack.enter_context(_bare(files[BARE]))),
            SERVICE: Creates("in process, one by one", one_by_one),
            STDIO: Creates("on stdio, one by one", lambda drafts: _over_stdio(session, drafts)),
            BARE_AT_ONCE: Creates(
                f"floor: {AT_ONCE} in a transaction",
                stack.enter_context(_bare_at_once(files[BARE_AT_ONCE])),
                at_once=True,
            ),
            SERVICE_AT_ONCE: Creates(f"in process, {AT_ONCE} at once", together, at_once=True),
            STDIO_AT_ONCE: Creates(
                f"on stdio, {AT_ONCE} at once", lambda drafts: _pipelined(session, drafts), at_once=True
            ),
        }
        for way in ways.values():
            way.run([_renamed(writing.draft(), "first") for _ in range(AT_ONCE)])
        order = list(ways.values())
        for number in range(effort.rounds):
            _tell(f"Creates {number + 1} of {effort.rounds} ...")
            for way in order:
                _create(way, writing, effort)
            order.append(order.pop(0))
    return ways


def _create(way: Creates, writing: Writing, effort: Effort) -> None:
    batches = effort.pipelines if way.at_once else 1
    drafts = [
        [writing.draft() for _ in range(AT_ONCE if way.at_once else effort.creates)] for _ in range(batches)
    ]
    for batch in drafts:
        way.samples += way.run(batch)


_INSERT: Final = "INSERT INTO bare (id, name, title, description, content, tags) VALUES (?, ?, ?, ?, ?, ?)"


def _row(draft: Draft) -> tuple[str | None, ...]:
    name, tags = name_from(draft.title), msgspec.json.encode(draft.tags).decode()
    return str(uuid.uuid4()), name, draft.title, None, draft.content, tags


@contextlib.contextmanager
def _bare(file: Path) -> Iterator[Run]:
    """One row to a transaction; a trigger writes the index."""
    connection = bare_connection(file)

    def run(drafts: Sequence[Draft]) -> list[float]:
        samples = []
        for row in map(_row, drafts):
            start = time.perf_counter()
            connection.execute(_INSERT, row)
            samples.append(time.perf_counter() - start)
        return samples

    with contextlib.closing(connection):
        yield run


@contextlib.contextmanager
def _bare_at_once(file: Path) -> Iterator[Run]:
    """All rows in a transaction, and the index after them.

    With a trigger it takes three times as long: SQLite sets a savepoint before each statement that fires one,
    and at every savepoint FTS5 writes out what it has gathered, instead of all of it at the commit.
    """
    connection = bare_connection(file)
    connection.execute("DROP TRIGGER bare_index_after_insert")

    def run(drafts: Sequence[Draft]) -> list[float]:
        rows = [_row(draft) for draft in drafts]
        start = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        before = connection.execute("SELECT max(number) FROM bare").get
        connection.executemany(_INSERT, rows)
        connection.execute(
            """INSERT INTO bare_index (rowid, text)
               SELECT number, lower(title) || char(10) || lower(content) FROM bare WHERE number > ?""",
            (before,),
        )
        connection.execute("COMMIT")
        return [(time.perf_counter() - start) / len(drafts)]

    with contextlib.closing(connection):
        yield run


@contextlib.contextmanager
def _service(file: Path) -> Iterator[tuple[Run, Run]]:
    with asyncio.Runner() as runner:
        workspace = Workspace(SqliteStore(str(file)))
        caller = Caller(runner.run(workspace.projects.find("default")).id, "benchmark")

        async def create(draft: Draft) -> float:
            start = time.perf_counter()
            await workspace.prompts.create(caller, title=draft.title, content=draft.content, tags=draft.tags)
            return time.perf_counter() - start

        async def one_by_one(drafts: Sequence[Draft]) -> list[float]:
            return [await create(draft) for draft in drafts]

        async def together(drafts: Sequence[Draft]) -> list[float]:
            start = time.perf_counter()
            await asyncio.gather(*(create(draft) for draft in drafts))
            return [(time.perf_counter() - start) / len(drafts)]

        try:
            yield (
                lambda drafts: runner.run(one_by_one(drafts)),
                lambda drafts: runner.run(together(drafts)),
            )
        finally:
            runner.run(workspace.store.close())


def _over_stdio(session: Session, drafts: Sequence[Draft]) -> list[float]:
    samples = []
    for draft in drafts:
        seconds, (answer,) = session.timed([add_prompt(draft)])
        _result(answer)
        samples.append(seconds)
    return samples


def _pipelined(session: Session, drafts: Sequence[Draft]) -> list[float]:
    seconds, answers = session.timed([add_prompt(draft) for draft in drafts])
    if len({_result(answer)["structuredContent"]["id"] for answer in answers}) != len(drafts):
        raise ServerFailed("pipelined creates did not make one prompt each")
    return [seconds / len(drafts)]


class Starts(Struct):
    """Seconds from the start of the process to two answers."""

    initialize: list[float] = field(default_factory=list)
    first_page: list[float] = field(default_factory=list)


def measure_starts(full: Path, folder: Path, effort: Effort) -> dict[str, Starts]:
    """Starts on an empty store and on a full one, in turns."""
    empty = folder / "empty.db"
    starts = {"empty": Starts(), "full": Starts()}
    # One more that does not count: files are made, bytecode is written.
    for number in range(effort.spawns + 1):
        if number % 5 == 1:
            _tell(f"Start-up {number} of {effort.spawns} ...")
        for name, database in (("empty", empty), ("full", full)):
            start = time.perf_counter()
            with Session(database) as session:
                session.greet()
                initialize = time.perf_counter() - start
                _, (answer,) = session.timed([Request("prompts/list", {})])
                first_page = time.perf_counter() - start
            if bool(_found(_result(answer))) != (name == "full"):
                raise ServerFailed(f"unexpected prompts in the {name} store: {answer[:500]!r}")
            if number:
                starts[name].initialize.append(initialize)
                starts[name].first_page.append(first_page)
    return starts


class Ratio(Struct, frozen=True):
    """A comparison of two things that were measured in turns."""

    title: str
    reached: float
    bar: float
    #: Whether it has to be at least the bar, and not at most.
    least: bool = False

    @property
    def met(self) -> bool:
        return self.reached >= self.bar if self.least else self.reached <= self.bar


class Report(Struct, frozen=True):
    """Everything that was measured."""

    machine: str
    items: int
    megabytes: float
    calls: list[Call]
    memory: int
    creates: dict[str, Creates]
    starts: dict[str, Starts]

    def ratios(self) -> list[Ratio]:
        """The comparisons, with their bars."""
        ways, empty, full = self.creates, self.starts["empty"], self.starts["full"]
        bare, in_process, on_stdio = (ways[name].samples for name in (BARE, SERVICE, STDIO))
        return [
            Ratio("create in process, over the floor", _over(in_process, bare), 2),
            Ratio("create on stdio, over the floor", _over(on_stdio, bare), 2),
            Ratio(
                f"{AT_ONCE} at once in process, over the rate of one by one",
                _over(in_process, ways[SERVICE_AT_ONCE].samples),
                2,
                least=True,
            ),
            Ratio(
                f"{AT_ONCE} at once on stdio, over the rate of one by one",
                _over(on_stdio, ways[STDIO_AT_ONCE].samples),
                2,
                least=True,
            ),
            Ratio("start-up, full over empty", _over(full.initialize, empty.initialize), 1.2),
            Ratio("... to a page of prompts", _over(full.first_page, empty.first_page), 1.2),
        ]


def _over(samples: Sequence[float], others: Sequence[float]) -> float:
    return statistics.median(samples) / statistics.median(others)


def _high(samples: Sequence[float]) -> float:
    """What 95 of 100 samples stay below."""
    return sorted(samples)[int(len(samples) * 0.95)]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def _call_row(call: Call) -> list[str]:
    median = statistics.median(call.samples)
    return [
        call.title,
        "" if call.found is None else f"{call.found:,}",
        _milliseconds(call.samples[0]),
        _milliseconds(median),
        _milliseconds(_high(call.samples)),
        "" if call.bar is None else f"{call.bar * 1000:g} ms",
        "" if call.bar is None else "ok" if median <= call.bar else "OVER",
    ]


def _create_row(way: Creates) -> list[str]:
    average = statistics.fmean(way.samples)
    return [
        way.title,
        _milliseconds(statistics.median(way.samples)),
        _milliseconds(_high(way.samples)),
        _milliseconds(average),
        f"{1 / average:,.0f}/s",
    ]


def _start_row(name: str, starts: Starts) -> list[str]:
    return [
        f"{name} store",
        _milliseconds(statistics.median(starts.initialize)),
        _milliseconds(statistics.median(starts.first_page)),
    ]


def _ratio_row(ratio: Ratio) -> list[str]:
    wanted, missed = ("at least", "UNDER") if ratio.least else ("at most", "OVER")
    return [ratio.title, f"{ratio.reached:.2f}x", f"{wanted} {ratio.bar:g}x", "ok" if ratio.met else missed]


def tables(report: Report) -> str:
    """The report for people."""
    items = f"{report.items:,}"
    return "\n\n".join(
        [
            f"{items} prompts and {items} tasks in {report.megabytes:.0f} MB, on {report.machine}",
            "Calls on stdio",
            _table(
                [
                    ["", "found", "first", "median", "95%", "bar", ""],
                    *(_call_row(call) for call in report.calls),
                ]
            ),
            f"The server took {report.memory / 1e6:.1f} MB of memory after them.",
            "Durable creates, per prompt",
            _table(
                [
                    ["", "median", "95%", "average", "rate on average"],
                    *(_create_row(way) for way in report.creates.values()),
                ]
            ),
            "From the start of the process to answers",
            _table(
                [
                    ["", "initialize", "prompts/list"],
                    *(_start_row(name, starts) for name, starts in report.starts.items()),
                ]
            ),
            "Ratios",
            _table([["", "reached", "bar", ""], *(_ratio_row(ratio) for ratio in report.ratios())]),
        ]
    )


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def as_json(report: Report) -> Mapping[str, Any]:
    """All samples, in seconds, and the ratios."""
    return {
        "machine": report.machine,
        "items": report.items,
        "megabytes": report.megabytes,
        "memory": report.memory,
        "calls": [
            {
                "call": call.title,
                "found": call.found,
                "bar": call.bar,
                "median": statistics.median(call.samples),
                "samples": call.samples,
            }
            for call in report.calls
        ],
        "creates": {name: way.samples for name, way in report.creates.items()},
        "starts": report.starts,
        "ratios": [
            {"ratio": ratio.title, "reached": ratio.reached, "bar": ratio.bar, "met": ratio.met}
            for ratio in report.ratios()
        ],
    }


def _tell(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


def _machine() -> str:
    system, python_version = platform.system(), platform.python_version()
    return f"{system} {platform.machine()}, {os.cpu_count()} cores, Python {python_version}"


def measure(items: int, effort: Effort) -> Report:
    """Everything, one after another."""
    files = prepare(items)
    # Not in a temporary folder of the system: that may be in memory, where nothing is durable.
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        folder = Path(name)
        with copied(files.workspace, folder, "full") as full:
            size = full.stat().st_size / 1e6
            starts = measure_starts(full, folder, effort)
            found, memory = measure_calls(full, items, effort)
        creates = measure_creates(files.workspace, files.bare, folder, effort)
    return Report(_machine(), items, size, found, memory, creates, starts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store", description=__doc__)
    parser.add_argument(
        "--items", type=int, default=100_000, help="how many prompts, and how many tasks (default: 100000)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    parser.add_argument("--json", action="store_true", help="all samples as JSON")
    options = parser.parse_args()
    if options.items < 1000:
        raise SystemExit("error: a store of fewer than 1000 items is not worth measuring")
    try:
        report = measure(options.items, QUICK if options.quick else FULL)
    except ServerFailed as error:
        raise SystemExit(f"error: {error}") from None
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(as_json(report))).decode())
    else:
        print(tables(report))


if __name__ == "__main__":
    main()
