"""Measures the service times for the model of the capacity page, and what many workspaces cost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]  # it has no types
from msgspec import Struct

from benchmarks.bench_databases import Cluster, cluster, create_requests, dittybag_server
from benchmarks.capacity_model import BatchFigures, LoadFigures, Measurements
from benchmarks.http_client import STATELESS, HttpServer, PreparedRequest, call
from benchmarks.report_output import describe_machine, print_progress
from benchmarks.sample_data import CACHE, TextGenerator
from benchmarks.stdio_client import ServerFailed
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.postgres.postgres_store import PostgresStore
from dittybag.storage.sqlite.sqlite_store import SqliteStore

CONNECTIONS: Final = (1, 8, 24)
BATCHES: Final = (1, 2, 4, 8, 16, 32, 64)

Figures = TypeVar("Figures")

_TICKS: Final = os.sysconf("SC_CLK_TCK")


class CapacitySampling(Struct, frozen=True):
    """The number and length of the measurements."""

    rounds: int
    seconds: float
    #: The numbers of workspaces: schemas of one PostgreSQL, and files that one process has open.
    schemas: int
    files: int


FULL: Final = CapacitySampling(rounds=12, seconds=1.0, schemas=1000, files=1000)
QUICK: Final = CapacitySampling(rounds=6, seconds=0.5, schemas=50, files=200)


# Service times


def database_seconds(server: Cluster) -> float:
    """Return the CPU seconds of a PostgreSQL server, with all its processes, living and ended."""
    postmaster = server.pid
    total = sum(map(int, _stat(postmaster)[11:15]))
    for name in os.listdir("/proc"):  # noqa: PTH208  # only the names are needed
        # The process may end meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if name.isdigit() and int(_stat(int(name))[1]) == postmaster:
                total += sum(map(int, _stat(int(name))[11:13]))
    return total / _TICKS


def running_threads() -> float:
    """Return how many threads of other programs run on this machine, or wait for a processor."""
    found = []
    for _ in range(5):
        time.sleep(0.004)
        status = Path("/proc/stat").read_text()
        found.append(int(status.partition("procs_running ")[2].split()[0]) - 1)
    return statistics.mean(found)


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def measure_service_times(sampling: CapacitySampling) -> Measurements:
    """Measure reads and creates over HTTP, and batches of the writer, on a durable PostgreSQL."""
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as home, cluster() as database:
        url = database.url()
        with dittybag_server(url, Path(home)) as server:
            prompts = _fill(server)
            loads: dict[tuple[str, int], list[LoadFigures]] = {}
            generator = TextGenerator("capacity")
            created = 0.0
            stored, logged = _database_size(database), _log_position(database)
            for number in range(sampling.rounds):
                print_progress(f"Service times, round {number + 1} of {sampling.rounds} ...")
                for connections in CONNECTIONS:
                    reads = _measure_load(server, database, prompts, connections, sampling.seconds)
                    creates = create_requests(generator, f"{number}.{connections}", sampling.seconds)
                    writes = _measure_load(server, database, creates, connections, sampling.seconds)
                    created += writes.rate * sampling.seconds
                    loads.setdefault(("read", connections), []).append(reads)
                    loads.setdefault(("create", connections), []).append(writes)
            stored, logged = _database_size(database) - stored, _log_position(database) - logged
            memory = server.memory()
        batches = asyncio.run(_measure_batches(url, database, sampling.rounds))
    return Measurements(
        machine=describe_machine(),
        processors=os.cpu_count() or 1,
        load=(before, os.getloadavg()[0]),
        reads=tuple(_median_load(loads["read", connections]) for connections in CONNECTIONS),
        creates=tuple(_median_load(loads["create", connections]) for connections in CONNECTIONS),
        batches=batches,
        server_memory=memory,
        stored_bytes=stored / created,
        logged_bytes=logged / created,
    )


def _fill(server: HttpServer) -> list[PreparedRequest]:
    """Create prompts, and return requests that read them."""
    server.run_load(create_requests(TextGenerator("reads"), "first", 1.0), 8, 1.0)
    listed: list[str] = []

    def keep(result: Any) -> bool:
        listed.extend(each["id"] for each in result["structuredContent"]["prompts"])
        return True

    server.run_load([call(1, STATELESS, "list_prompts", {"limit": 100}, keep)], 1, 0.01)
    if not listed:
        raise ServerFailed("no prompts were created")

    def is_prompt(key: str) -> Any:
        return lambda result: result["structuredContent"]["id"] == key

    return [
        call(number, STATELESS, "get_prompt", {"id": key}, is_prompt(key))
        for number, key in enumerate(listed)
    ]


def _measure_load(
    server: HttpServer, database: Cluster, requests: list[PreparedRequest], connections: int, seconds: float
) -> LoadFigures:
    background = [running_threads()]
    before = database_seconds(database)
    load = server.run_load(requests, connections, seconds)
    used = database_seconds(database) - before
    background.append(running_threads())
    return LoadFigures(
        connections=connections,
        rate=load.rate,
        median=load.median,
        p99=load.p99,
        server=load.cost or 0.0,
        database=used / (load.rate * seconds),
        client=load.client / load.rate,
        background=statistics.mean(background),
        quantiles=load.quantiles,
    )


def _undisturbed(rounds: list[Figures], speed: Callable[[Figures], float]) -> list[Figures]:
    """Return the fastest third of the rounds: other programs on the machine only make them slower."""
    return sorted(rounds, key=speed, reverse=True)[: max(1, len(rounds) // 3)]


def _median_load(rounds: list[LoadFigures]) -> LoadFigures:
    """Return the median of each figure in the rounds that were disturbed least."""
    loads = _undisturbed(rounds, lambda load: load.rate)
    names = ("rate", "median", "p99", "server", "database", "client", "background")
    figures = {name: statistics.median(getattr(load, name) for load in loads) for name in names}
    columns = zip(*(load.quantiles for load in loads), strict=True)
    quantiles = tuple(statistics.median(column) for column in columns)
    return LoadFigures(connections=loads[0].connections, quantiles=quantiles, **figures)


async def _measure_batches(url: str, database: Cluster, rounds: int) -> tuple[BatchFigures, ...]:
    """Measure creates that are submitted together, without HTTP: the writer commits them as one batch."""
    generator = TextGenerator("batches")
    found: dict[int, list[BatchFigures]] = {}
    async with _opened(url) as (workspace, caller):
        for _ in range(rounds):
            for size in BATCHES:
                found.setdefault(size, []).append(
                    await _measure_batch(workspace, caller, database, generator, size)
                )
    return tuple(_median_batch(found[size]) for size in BATCHES)


def _median_batch(rounds: list[BatchFigures]) -> BatchFigures:
    batches = _undisturbed(rounds, lambda batch: -batch.elapsed)
    names = ("elapsed", "server", "database", "background")
    figures = {name: statistics.median(getattr(batch, name) for batch in batches) for name in names}
    return BatchFigures(size=batches[0].size, **figures)


async def _measure_batch(
    workspace: Workspace, caller: Caller, database: Cluster, generator: TextGenerator, size: int
) -> BatchFigures:
    """Return the mean of several batches: PostgreSQL's CPU time is counted in steps of 10 ms."""
    repeated = max(4, 200 // size)
    drafts = [[generator.draft() for _ in range(size)] for _ in range(repeated)]
    elapsed = []
    database_before, before = database_seconds(database), time.process_time()
    for batch in drafts:
        started = time.perf_counter()
        await asyncio.gather(
            *(workspace.prompts.create(caller, title=draft.title, content=draft.content) for draft in batch)
        )
        elapsed.append(time.perf_counter() - started)
    used, database_used = time.process_time() - before, database_seconds(database) - database_before
    return BatchFigures(
        size, statistics.median(elapsed), used / repeated, database_used / repeated, running_threads()
    )


@contextlib.asynccontextmanager
async def _opened(url: str) -> AsyncIterator[tuple[Workspace, Caller]]:
    workspace = Workspace(await PostgresStore.open(url))
    try:
        yield workspace, Caller((await workspace.projects.find("default")).id, "benchmark")
    finally:
        await workspace.store.close()


def _database_size(database: Cluster) -> int:
    return int(database.sql("SELECT pg_database_size(current_database())")[0])


def _log_position(database: Cluster) -> int:
    return int(database.sql("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")[0])


# Many workspaces


class SchemaFigures(Struct, frozen=True):
    """What schemas of one PostgreSQL database cost, each with a workspace."""

    count: int
    #: Seconds to create one, and to open an existing one: the first, and the last.
    create: float
    open_first: float
    open_last: float
    #: Bytes of the system catalogues, files and bytes of the database, for each schema.
    catalogue: float
    files: float
    size: float
    #: Bytes of private memory of a backend, before and after it has read a table of each schema.
    backend_before: int
    backend_after: int


def measure_schemas(count: int) -> SchemaFigures:
    """Create workspaces in schemas of one database."""
    with cluster() as database:
        urls = [database.url(schema=f"w{number}") for number in range(count)]
        before = _catalogue(database)
        started = time.perf_counter()
        for number, url in enumerate(urls):
            if number % 50 == 0:
                print_progress(f"Schemas: {number} of {count} ...")
            asyncio.run(_open_and_close(url))
        create = (time.perf_counter() - started) / count
        after = _catalogue(database)
        first, last = (
            statistics.median(asyncio.run(_open_and_close(url)) for _ in range(5))
            for url in (urls[0], urls[-1])
        )
        memory = asyncio.run(_backend_memory(database.url(), count))
    catalogue, files, size = ((end - start) / count for start, end in zip(before, after, strict=True))
    return SchemaFigures(count, create, first, last, catalogue, files, size, *memory)


async def _open_and_close(url: str) -> float:
    started = time.perf_counter()
    store = await PostgresStore.open(url)
    took = time.perf_counter() - started
    await store.close()
    return took


def _catalogue(database: Cluster) -> tuple[int, int, int]:
    """Return the bytes of the system catalogues, the number of files, and the bytes of the database."""
    found = database.sql(
        """SELECT sum(pg_total_relation_size(oid)) FROM pg_class
           WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'
           UNION ALL SELECT count(*) FROM pg_database, pg_ls_dir('base/' || oid)
           WHERE datname = current_database()"""
    )
    return int(found[0]), int(found[1]), _database_size(database)


async def _backend_memory(url: str, count: int) -> tuple[int, int]:
    """Return the private memory of one backend before and after it has used many schemas."""
    connection = await asyncpg.connect(url)
    try:
        pid = connection.get_server_pid()
        before = _private_memory(pid)
        for number in range(count):
            await connection.execute(
                f"SELECT count(*) FROM w{number}.prompts JOIN w{number}.changes ON false"
            )
        return before, _private_memory(pid)
    finally:
        await connection.close()


def _private_memory(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


class FileFigures(Struct, frozen=True):
    """What open SQLite workspaces of one process cost, each."""

    count: int
    create: float
    open: float
    close: float
    memory: float
    descriptors: float
    threads: float
    size: int


def measure_files(count: int) -> FileFigures:
    """Open many SQLite workspaces in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    CACHE.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=CACHE) as folder, asyncio.Runner() as runner:
            return runner.run(_measure_files(Path(folder), count))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def _measure_files(folder: Path, count: int) -> FileFigures:
    template = folder / "template.db"
    started = time.perf_counter()
    store = SqliteStore(str(template))
    create = time.perf_counter() - started
    await _write_once(store)
    await store.close()
    files = [folder / f"{number}.db" for number in range(count)]
    for file in files:
        shutil.copyfile(template, file)
    before = _process_state()
    started = time.perf_counter()
    stores = [SqliteStore(str(file)) for file in files]
    opened = time.perf_counter() - started
    for store in stores:
        await _write_once(store)
    after = _process_state()
    started = time.perf_counter()
    for store in stores:
        await store.close()
    closed = time.perf_counter() - started
    memory, descriptors, threads = ((end - start) / count for start, end in zip(before, after, strict=True))
    return FileFigures(
        count, create, opened / count, closed / count, memory, descriptors, threads, template.stat().st_size
    )


async def _write_once(store: SqliteStore) -> None:
    workspace = Workspace(store)
    caller = Caller((await workspace.projects.find("default")).id, "benchmark")
    await workspace.prompts.create(caller, title=str(uuid4()), content="x")


def _process_state() -> tuple[int, int, int]:
    """Return the private memory, the open descriptors and the threads of this process."""
    return _private_memory(os.getpid()), len(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208
