"""Durable creates: bare SQLite, through the services, and over stdio, in turns."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from benchmarks.report_output import tell
from benchmarks.sample_data import (
    TAGS,
    Draft,
    Writing,
    bare_connection,
    copied,
)
from benchmarks.stdio_client import ServerFailed
from benchmarks.store_calls import AT_ONCE, Effort, Run, Session, add_prompt, renamed, result_of
from dittybag.domain.names import name_from_title
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite.store import SqliteStore


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
SERVICE_TAGGED: Final = "service_tagged"
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
        one_by_one, tagged, together = stack.enter_context(_service(files[SERVICE]))
        ways = {
            BARE: Creates("floor: a bare insert", stack.enter_context(_bare(files[BARE]))),
            SERVICE: Creates("in process, one by one", one_by_one),
            SERVICE_TAGGED: Creates("in process, with three tags", tagged),
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
            way.run([renamed(writing.draft(), "first") for _ in range(AT_ONCE)])
        order = list(ways.values())
        for number in range(effort.rounds):
            tell(f"Creates {number + 1} of {effort.rounds} ...")
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
    name, tags = name_from_title(draft.title), msgspec.json.encode(draft.tags).decode()
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
def _service(file: Path) -> Iterator[tuple[Run, Run, Run]]:
    with asyncio.Runner() as runner:
        workspace = Workspace(SqliteStore(str(file)))
        caller = Caller(runner.run(workspace.projects.find("default")).id, "benchmark")

        async def create(draft: Draft, tags: Sequence[str] = ()) -> float:
            start = time.perf_counter()
            await workspace.prompts.create(caller, title=draft.title, content=draft.content, tags=tags)
            return time.perf_counter() - start

        async def one_by_one(drafts: Sequence[Draft], tags: Sequence[str] = ()) -> list[float]:
            return [await create(draft, tags) for draft in drafts]

        async def together(drafts: Sequence[Draft]) -> list[float]:
            start = time.perf_counter()
            await asyncio.gather(*(create(draft) for draft in drafts))
            return [(time.perf_counter() - start) / len(drafts)]

        try:
            yield (
                lambda drafts: runner.run(one_by_one(drafts)),
                lambda drafts: runner.run(one_by_one(drafts, list(TAGS)[:3])),
                lambda drafts: runner.run(together(drafts)),
            )
        finally:
            runner.run(workspace.store.close())


def _over_stdio(session: Session, drafts: Sequence[Draft]) -> list[float]:
    samples = []
    for draft in drafts:
        seconds, (answer,) = session.timed([add_prompt(draft)])
        result_of(answer)
        samples.append(seconds)
    return samples


def _pipelined(session: Session, drafts: Sequence[Draft]) -> list[float]:
    seconds, answers = session.timed([add_prompt(draft) for draft in drafts])
    if len({result_of(answer)["structuredContent"]["id"] for answer in answers}) != len(drafts):
        raise ServerFailed("pipelined creates did not make one prompt each")
    return [seconds / len(drafts)]
