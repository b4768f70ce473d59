"""Measures the queue of ready tasks: `python -m benchmarks.bench_tasks`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
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


async def measure_claims(workspace: Workspace, case: Case, count: int) -> list[float]:
    """Claim tasks and give them back. Returns the seconds of each claim."""
    samples = []
    for _ in range(count):
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


def run(count: int) -> list[list[str]]:
    rows = [["claim of the best ready task", "SQLite p50", "p95", "PostgreSQL p50", "p95"]]
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder, cluster() as server:
        for number, case in enumerate(CASES):
            print_progress(f"{case.title} ...")

            async def measure(location: str, case: Case = case) -> list[float]:
                async with filled(location, case) as workspace:
                    if location.startswith("postgres"):
                        server.sql("VACUUM ANALYZE")
                    return await measure_claims(workspace, case, count)

            server.sql(f"CREATE SCHEMA case{number}")
            locations = str(Path(folder) / f"{number}.db"), server.url(schema=f"case{number}")
            row = [case.title]
            for location in locations:
                samples = asyncio.run(measure(location))
                row += [f"{statistics.median(samples) * 1e3:.1f} ms", f"{percentile(samples, 95) * 1e3:.1f} ms"]
            print_progress(str(row))
            rows.append(row)
            server.sql(f"DROP SCHEMA case{number} CASCADE")
            Path(locations[0]).unlink()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_tasks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    options = parser.parse_args()
    print(f"On {describe_machine()}.\n")
    print(table(run(CLAIMS // 10 if options.quick else CLAIMS)))


if __name__ == "__main__":
    main()
