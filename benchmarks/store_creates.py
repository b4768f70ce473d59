"""Measures durable creates: with bare SQLite, through the services, and over stdio."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from benchmarks.report_output import print_progress
from benchmarks.sample_data import (
    TAGS,
    Draft,
    TextGenerator,
    bare_connection,
    temporary_copy,
)
from benchmarks.stdio_client import ServerFailed
from benchmarks.store_calls import (
    CONCURRENT,
    CreatePrompts,
    DittybagSession,
    StoreSampling,
    add_prompt,
    result_of,
    with_title_prefix,
)
from dittybag.domain.names import name_from_title
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.domain.prompts import Prompt
from dittybag.domain.ranked_search import searched_texts
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.sql.row_mapping import state_to_json
from dittybag.storage.sqlite.sqlite_connections import connect
from dittybag.storage.sqlite.sqlite_queries import SqliteTables
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from dittybag.storage.sqlite.sqlite_text_search import INDEXES, INSERTS, WORD_INDEX, index_text
from dittybag.storage.sqlite.word_index import column_values, row_id


class CreateMethod(Struct):
    """One method of creating prompts, with its samples."""

    title: str
    run: CreatePrompts
    concurrent: bool = False
    #: Seconds per prompt. A concurrent batch is one sample: its total time divided by its size.
    samples: list[float] = field(default_factory=list)


BARE: Final = "bare"
INDEXED: Final = "indexed"
LOGGED: Final = "logged"
BARE_CONCURRENT: Final = "bare_concurrent"
SERVICE: Final = "service"
SERVICE_TAGGED: Final = "service_tagged"
SERVICE_CONCURRENT: Final = "service_concurrent"
STDIO: Final = "stdio"
STDIO_CONCURRENT: Final = "stdio_concurrent"


def measure_creates(
    workspace: Path, bare: Path, folder: Path, sampling: StoreSampling
) -> dict[str, CreateMethod]:
    """Measure all methods in turns, each with its own file."""
    generator = TextGenerator("creates")
    with contextlib.ExitStack() as stack:
        sources = dict.fromkeys((BARE, BARE_CONCURRENT), bare)
        sources |= dict.fromkeys((INDEXED, LOGGED, SERVICE, STDIO), workspace)
        files = {
            name: stack.enter_context(temporary_copy(source, folder, name))
            for name, source in sources.items()
        }
        session = stack.enter_context(DittybagSession(files[STDIO]))
        session.initialize()
        sequentially, tagged, concurrently = stack.enter_context(_service(files[SERVICE]))
        methods = {
            BARE: CreateMethod("baseline: bare insert", stack.enter_context(_bare(files[BARE]))),
            INDEXED: CreateMethod(
                "baseline: with all indexes of a prompt", stack.enter_context(_indexed(files[INDEXED]))
            ),
            LOGGED: CreateMethod(
                "baseline: with the change log as well",
                stack.enter_context(_indexed(files[LOGGED], is_logged=True)),
            ),
            SERVICE: CreateMethod("in process, sequential", sequentially),
            SERVICE_TAGGED: CreateMethod("in process, with three tags", tagged),
            STDIO: CreateMethod("on stdio, sequential", lambda drafts: _over_stdio(session, drafts)),
            BARE_CONCURRENT: CreateMethod(
                f"baseline: {CONCURRENT} in one transaction",
                stack.enter_context(_bare_concurrent(files[BARE_CONCURRENT])),
                concurrent=True,
            ),
            SERVICE_CONCURRENT: CreateMethod(
                f"in process, {CONCURRENT} concurrent", concurrently, concurrent=True
            ),
            STDIO_CONCURRENT: CreateMethod(
                f"on stdio, {CONCURRENT} pipelined",
                lambda drafts: _pipelined(session, drafts),
                concurrent=True,
            ),
        }
        for method in methods.values():
            method.run([with_title_prefix(generator.draft(), "first") for _ in range(CONCURRENT)])
        order = list(methods.values())
        for number in range(sampling.rounds):
            print_progress(f"Creates {number + 1} of {sampling.rounds} ...")
            for method in order:
                _create(method, generator, sampling)
            order.append(order.pop(0))
    return methods


def _create(method: CreateMethod, generator: TextGenerator, sampling: StoreSampling) -> None:
    batches = sampling.batches if method.concurrent else 1
    drafts = [
        [generator.draft() for _ in range(CONCURRENT if method.concurrent else sampling.creates)]
        for _ in range(batches)
    ]
    for batch in drafts:
        method.samples += method.run(batch)


_INSERT: Final = "INSERT INTO bare (id, name, title, description, content, tags) VALUES (?, ?, ?, ?, ?, ?)"


def _row(draft: Draft) -> tuple[str | None, ...]:
    name, tags = name_from_title(draft.title), msgspec.json.encode(draft.tags).decode()
    return str(uuid.uuid4()), name, draft.title, None, draft.content, tags


@contextlib.contextmanager
def _bare(file: Path) -> Iterator[CreatePrompts]:
    """One row per transaction; a trigger writes the index."""
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
def _indexed(file: Path, *, is_logged: bool = False) -> Iterator[CreatePrompts]:
    """One prompt per transaction: the row and all index entries that Dittybag writes, and the change log."""
    connection = connect(str(file), writable=True)
    tables = SqliteTables(connection)
    project = connection.execute("SELECT id FROM projects WHERE name = ?", (DEFAULT_PROJECT,)).get

    def run(drafts: Sequence[Draft]) -> list[float]:
        first = connection.execute("SELECT max(seq) + 1 FROM changes").get
        first = max(first, connection.execute("SELECT max(number) + 1 FROM prompts").get)
        return [insert(_prompt(draft, number, project)) for number, draft in enumerate(drafts, first)]

    def insert(prompt: Prompt) -> float:
        number, row = prompt.number, tables.rows["prompt"].values(prompt)
        change = (*[number] * 2, prompt.created_at, "create", "prompt", prompt.id, project, "benchmark")
        state, text = state_to_json(prompt), index_text("prompt", prompt, None)
        words = column_values(searched_texts(prompt, None))
        start = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_insert_sql("prompts", row), tuple(row.values()))
        if is_logged:
            connection.execute(_insert_sql("changes", _CHANGE), (*change, state))
        connection.execute(INSERTS[INDEXES["prompt"]], (number, text))
        connection.execute(INSERTS[WORD_INDEX], (row_id("prompt", number), *words))
        connection.execute("COMMIT")
        return time.perf_counter() - start

    with contextlib.closing(connection):
        yield run


_CHANGE: Final = ("seq", "batch", "at", "action", "kind", "entity", "project", "actor", "after")


def _insert_sql(table: str, columns: Iterable[str]) -> str:
    names = list(columns)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def _prompt(draft: Draft, number: int, project: int) -> Prompt:
    now = time.time_ns() // 1000
    return Prompt(
        number=number,
        id=str(uuid.uuid4()),
        project=project,
        name=name_from_title(draft.title),
        title=draft.title,
        content=draft.content,
        created_at=now,
        updated_at=now,
    )


@contextlib.contextmanager
def _bare_concurrent(file: Path) -> Iterator[CreatePrompts]:
    """All rows in one transaction, followed by their index entries.

    A trigger takes three times as long: SQLite sets a savepoint before each statement that fires a trigger,
    and FTS5 flushes its pending terms at every savepoint instead of once at the commit.
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
def _service(file: Path) -> Iterator[tuple[CreatePrompts, CreatePrompts, CreatePrompts]]:
    with asyncio.Runner() as runner:
        workspace = Workspace(SqliteStore(str(file)))
        caller = Caller(runner.run(workspace.projects.find("default")).id, "benchmark")

        async def create(draft: Draft, tags: Sequence[str] = ()) -> float:
            start = time.perf_counter()
            await workspace.prompts.create(caller, title=draft.title, content=draft.content, tags=tags)
            return time.perf_counter() - start

        async def sequentially(drafts: Sequence[Draft], tags: Sequence[str] = ()) -> list[float]:
            return [await create(draft, tags) for draft in drafts]

        async def concurrently(drafts: Sequence[Draft]) -> list[float]:
            start = time.perf_counter()
            await asyncio.gather(*(create(draft) for draft in drafts))
            return [(time.perf_counter() - start) / len(drafts)]

        try:
            yield (
                lambda drafts: runner.run(sequentially(drafts)),
                lambda drafts: runner.run(sequentially(drafts, list(TAGS)[:3])),
                lambda drafts: runner.run(concurrently(drafts)),
            )
        finally:
            runner.run(workspace.store.close())


def _over_stdio(session: DittybagSession, drafts: Sequence[Draft]) -> list[float]:
    samples = []
    for draft in drafts:
        seconds, (response,) = session.time_requests([add_prompt(draft)])
        result_of(response)
        samples.append(seconds)
    return samples


def _pipelined(session: DittybagSession, drafts: Sequence[Draft]) -> list[float]:
    seconds, responses = session.time_requests([add_prompt(draft) for draft in drafts])
    if len({result_of(response)["structuredContent"]["id"] for response in responses}) != len(drafts):
        raise ServerFailed("pipelined creates did not create one prompt each")
    return [seconds / len(drafts)]
