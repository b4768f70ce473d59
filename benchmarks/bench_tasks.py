"""Measures the queue of ready tasks: `python -m benchmarks.bench_tasks`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final

from benchmarks.bench_databases import cluster
from benchmarks.report_output import describe_machine, print_progress, table
from benchmarks.sample_data import CACHE
from benchmarks.task_samples import CASES, WORKER, Case, fill
from dittybag.assembly.store_factory import open_store
from dittybag.services.workspace import Workspace

CLAIMS: Final = 300


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
async def filled(location: str, case: Case) -> AsyncIterator[Workspace]:
    workspace = Workspace(await open_store(location))
    try:
        await fill(workspace.store, case)
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


def claims_table(claims: int, databases: Sequence[str]) -> str:
    rows = [["claim of the best ready task", *(f"{name} p{n}" for name in databases for n in (50, 95))]]
    rows += [[case.title] for case in CASES]
    for name in databases:
        with DATABASES[name]() as locations:
            for case, row, location in zip(CASES, rows[1:], locations, strict=False):
                print_progress(f"{name}: {case.title} ...")
                samples = asyncio.run(measure_case(location, case, claims))
                row += [f"{percentile(samples, part) * 1e3:.1f} ms" for part in (50, 95)]
                print_progress(f"  {row[-2]}, {row[-1]}")
    return table(rows)


async def measure_case(location: str, case: Case, claims: int) -> list[float]:
    async with filled(location, case) as workspace:
        return await measure_claims(workspace, case, claims)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_tasks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    parser.add_argument("--database", choices=DATABASES, help="only this one (default: both)")
    options = parser.parse_args()
    databases = [options.database] if options.database else list(DATABASES)
    print(f"On {describe_machine()}.\n")
    print(claims_table(CLAIMS // 5 if options.quick else CLAIMS, databases))


if __name__ == "__main__":
    main()
