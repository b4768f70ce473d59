"""Measures the queue of ready tasks: `python -m benchmarks.bench_tasks`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.bench_databases import cluster
from benchmarks.report_output import print_progress, print_tables, rows_table
from benchmarks.sample_data import CACHE
from benchmarks.task_samples import CASES, LONG, WORKER, Case, SampleTask, chain, fill, fill_case, parts
from dittybag.assembly.store_factory import open_store
from dittybag.domain.errors import TaskCycle
from dittybag.services.task_queue import ClaimRequest
from dittybag.services.workspace import Workspace

#: A table for people: the titles of the columns, then the rows.
Rows: TypeAlias = list[list[str]]

CLAIMS: Final = 300
WORKERS: Final = 20
GRAPH_TASKS: Final = 2000
#: In seconds: how long a task takes. The work must take much longer than the claim.
DURATIONS: Final = (0.1, 0.3)


def percentile(samples: Sequence[float], percent: int) -> float:
    return sorted(samples)[len(samples) * percent // 100]


async def measure_claims(workspace: Workspace, case: Case, claims: int) -> list[float]:
    """Claim tasks and give them back. Returns the seconds of each claim."""
    samples = []
    for _ in range(claims):
        start = time.perf_counter()
        claimed = await workspace.task_queue.claim_next(WORKER, case.request)
        samples.append(time.perf_counter() - start)
        assert claimed is not None
        if claimed.task.status == "doing":
            await workspace.task_queue.release(WORKER, claimed.task.id, fence=claimed.claim.fence)
    return samples


@contextlib.asynccontextmanager
async def opened(location: str) -> AsyncIterator[Workspace]:
    workspace = Workspace(await open_store(location))
    try:
        yield workspace
    finally:
        await workspace.store.close()


@contextlib.contextmanager
def sqlite_locations() -> Iterator[Iterator[str]]:
    """Provide files on disk."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        yield (str(Path(folder) / f"{number}.db") for number in count())


@contextlib.contextmanager
def postgres_locations() -> Iterator[Iterator[str]]:
    """Provide schemas of a durable server."""
    with cluster() as server:
        yield (server.url(schema=f"tasks{number}") for number in count())


DATABASES: Final = {"SQLite": sqlite_locations, "PostgreSQL": postgres_locations}


def measure_cases(claims: int, databases: Sequence[str]) -> Rows:
    rows = [["claim of the best ready task", *(f"{name} p{n}" for name in databases for n in (50, 95))]]
    rows += [[case.title] for case in CASES]
    for name in databases:
        with DATABASES[name]() as locations:
            for case, row, location in zip(CASES, rows[1:], locations, strict=False):
                print_progress(f"{name}: {case.title} ...")
                samples = asyncio.run(measure_case(location, case, claims))
                row += [f"{percentile(samples, part) * 1e3:.1f} ms" for part in (50, 95)]
                print_progress(f"  {row[-2]}, {row[-1]}")
    return rows


async def measure_case(location: str, case: Case, claims: int) -> list[float]:
    async with opened(location) as workspace:
        await fill_case(workspace.store, case)
        return await measure_claims(workspace, case, claims)


async def measure_series(location: str, tasks: list[SampleTask], count: int) -> list[float]:
    """Claim and finish tasks one after the other. Returns the seconds of each."""
    samples = []
    async with opened(location) as workspace:
        await fill(workspace.store, tasks)
        for _ in range(count):
            start = time.perf_counter()
            claimed = await workspace.task_queue.claim_next(WORKER, ClaimRequest())
            assert claimed is not None
            await workspace.task_queue.finish(WORKER, claimed.task.id, fence=claimed.claim.fence)
            samples.append(time.perf_counter() - start)
    return samples


async def measure_cycle(location: str) -> float:
    """Return the seconds until a cycle through a whole chain is refused."""
    async with opened(location) as workspace:
        await fill(workspace.store, chain())
        start = time.perf_counter()
        with contextlib.suppress(TaskCycle):
            await workspace.tasks.update(replace(WORKER, interface=None), 1, blocked_by=(LONG,))
        return time.perf_counter() - start


def measure_long(count: int, databases: Sequence[str]) -> Rows:
    rows = [["one after the other", *(f"{name} p{n}" for name in databases for n in (50, 95))]]
    rows += [["10,000 parts of a task"], ["chain of 10,000"], ["... a cycle through it is refused"]]
    for name in databases:
        print_progress(f"{name}: parts and a chain ...")
        with DATABASES[name]() as locations:
            for row, tasks in zip(rows[1:], (parts(), chain()), strict=False):
                samples = asyncio.run(measure_series(next(locations), tasks, count))
                row += [f"{percentile(samples, part) * 1e3:.1f} ms" for part in (50, 95)]
            rows[3] += [f"{asyncio.run(measure_cycle(next(locations))) * 1e3:.0f} ms", ""]
    return rows


class Run(Struct, frozen=True):
    """What some workers did."""

    workers: int
    tasks: int
    seconds: float
    #: The sum of the times that the tasks themselves take.
    work: float

    @property
    def rate(self) -> float:
        return self.tasks / self.seconds


def run_workers(location: str, workers: int, tasks: int) -> Run:
    """Let workers do a graph of tasks. Checks that each is done once, after all that it waits for."""
    graph, work = asyncio.run(build_graph(location, tasks))
    command = [sys.executable, "-m", "benchmarks.task_worker", location]
    started = [
        subprocess.Popen([*command, f"w{number}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(workers)
    ]
    for worker in started:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    start = time.time()
    for worker in started:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    outputs = [worker.communicate()[0] for worker in started]
    done: dict[int, tuple[float, float]] = {}
    for line in "".join(outputs).splitlines():
        task, begun, ended = line.split()
        assert int(task) not in done, "a task was done twice"
        done[int(task)] = float(begun), float(ended)
    assert done.keys() == graph.keys(), "a task was not done"
    for number, blockers in graph.items():
        assert all(done[blocker][1] <= done[number][0] for blocker in blockers), "a task was done too early"
    return Run(workers, tasks, max(end for _, end in done.values()) - start, work)


async def build_graph(location: str, tasks: int) -> tuple[dict[int, tuple[int, ...]], float]:
    """Create tasks of random duration that wait for up to three earlier ones. Returns what each waits for."""
    rng = random.Random(tasks)
    workspace = Workspace(await open_store(location))
    graph: dict[int, tuple[int, ...]] = {}
    work = 0.0
    for _ in range(tasks):
        blocked_by = tuple(sorted(rng.sample(list(graph), min(rng.randint(0, 3), len(graph)))))
        seconds = rng.uniform(*DURATIONS)
        work += seconds
        task = await workspace.tasks.create(
            replace(WORKER, interface=None), title="t", notes=f"{seconds:.3f}", blocked_by=blocked_by
        )
        graph[task.id] = blocked_by
    await workspace.store.close()
    return graph, work


def measure_workers(tasks: int) -> Rows:
    rows = [["workers", "tasks", "seconds", "tasks per second", "ratio", "of the ideal"]]
    with sqlite_locations() as locations:
        one = None
        for workers in (1, WORKERS):
            print_progress(f"{workers} workers ...")
            run = run_workers(next(locations), workers, tasks if workers > 1 else tasks // WORKERS)
            one = one or run
            ratio = run.rate / one.rate
            rows.append(
                [
                    str(run.workers),
                    str(run.tasks),
                    f"{run.seconds:.1f}",
                    f"{run.rate:.1f}",
                    f"{ratio:.1f}",
                    f"{ratio / run.workers:.0%}",
                ]
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_tasks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    parser.add_argument("--database", choices=DATABASES, help="only this one (default: both)")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    options = parser.parse_args()
    databases = [options.database] if options.database else list(DATABASES)
    claims = CLAIMS // 5 if options.quick else CLAIMS
    measured = {
        "Workers on a graph of tasks, SQLite": measure_workers(
            GRAPH_TASKS // 5 if options.quick else GRAPH_TASKS
        ),
        "To claim and finish the next task": measure_long(claims, databases),
        "To claim the best ready task of 100,000": measure_cases(claims, databases),
    }
    found = [rows_table(title, rows) for title, rows in measured.items()]
    print_tables(found, as_json=options.json)


if __name__ == "__main__":
    main()
