"""Measures the ranked search: `python -m benchmarks.bench_search`.

What it finds of questions over public collections, compared with plain FTS5, and on both databases; how
long it takes in a full store; and how many bytes its index takes.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import apsw
from tests.storage_contract.store_session import StoreSession, open_session

from benchmarks import search_quality
from benchmarks.postgres_cluster import cluster
from benchmarks.report_output import ReportTable, print_progress, print_tables, rows_table
from benchmarks.sample_data import (
    CACHE,
    RARE_WORDS,
    TextGenerator,
    temporary_copy,
)
from benchmarks.scale_data import build_workspace
from dittybag.domain.ports import Store
from dittybag.services.search_service import RankedQuery
from dittybag.storage.postgres.postgres_store import PostgresStore
from dittybag.storage.sqlite.sqlite_store import SqliteStore

# Quality


async def _finder(
    store: Store, documents: Sequence[search_quality.CollectedDocument]
) -> search_quality.Finder:
    session = await open_session(store)
    names = await search_quality.store_documents(session.workspace, session.caller, documents)
    return search_quality.ranked_finder(session.workspace, session.caller, names)


async def measure_quality(folder: Path, address: str) -> ReportTable:
    """Ask all questions."""
    questions, documents = search_quality.load_questions(), search_quality.load_documents()
    print_progress(f"Asking {len(questions)} questions over {len(documents)} documents ...")
    sqlite, postgres = SqliteStore(str(folder / "quality.db")), await PostgresStore.open(address)
    try:
        finders = {
            "plain FTS5, porter": search_quality.plain_finder(documents),
            "Dittybag on SQLite": await _finder(sqlite, documents),
            "Dittybag on PostgreSQL": await _finder(postgres, documents),
        }
        rows = [("", "among the first five", "mean reciprocal rank")]
        for name, find in finders.items():
            found = await search_quality.measure_quality(questions, find)
            rows.append((name, f"{found.found:.1%}", f"{found.reciprocal_rank:.3f}"))
        _, one, other = finders.values()
        overlap = await search_quality.measure_overlap(questions, one, other)
    finally:
        await sqlite.close()
        await postgres.close()
    note = f"The first ten on SQLite and PostgreSQL overlap by {overlap:.3f}."
    return rows_table(f"What {len(questions)} questions find", rows, note)


# Speed


def _queries(count: int) -> list[str]:
    """Return queries of one to five words, some of them rare and most of them as frequent as in texts."""
    choose = random.Random("queries")
    generator = TextGenerator("queries")
    queries = []
    for _ in range(count):
        words = generator.words(choose.randint(1, 5))
        if choose.random() < 0.3:
            words.append(choose.choice(RARE_WORDS))
        queries.append(" ".join(words))
    return queries


async def _time_searches(
    session: StoreSession, queries: Sequence[str], **more: Any
) -> list[tuple[float, float]]:
    """Return the seconds of each search, and those of the processor, which other programs do not change."""
    samples = []
    for text in [*queries[:10], *queries]:
        start, processor = time.perf_counter(), time.process_time()
        await session.workspace.search.ranked(session.caller, RankedQuery(text, **more))
        samples.append((time.perf_counter() - start, time.process_time() - processor))
    return samples[10:]


async def measure_speed(store: Store, count: int) -> list[list[str]]:
    """Return rows with the times of several kinds of queries."""
    session = await open_session(store)
    queries = _queries(count)
    kinds = {
        "one to six words": await _time_searches(session, queries),
        "while typing": await _time_searches(session, [text[:-1] for text in queries], incomplete=True),
        "quoted text": await _time_searches(session, [f'"{text.split()[-1]}"' for text in queries]),
    }
    rows = []
    for name, samples in kinds.items():
        row = [name]
        for part in (0, 1):
            seconds = [sample[part] for sample in samples]
            row += map(_milliseconds, (statistics.median(seconds), statistics.quantiles(seconds, n=20)[-1]))
        rows.append(row)
    return rows


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


# Costs


def measure_size(workspace: Path, folder: Path) -> str:
    """Compare the size of a file with that of the same file without the index."""
    sizes = []
    for statements in ("", "DROP TABLE word_frequencies; DROP TABLE word_index;"):
        with temporary_copy(workspace, folder, "size") as file:
            connection = apsw.Connection(str(file))
            connection.execute(f"{statements} VACUUM")
            connection.close()
            sizes.append(file.stat().st_size)
    with_index, without = sizes
    ratio = f"{with_index / without:.3f}"
    return f"{without / 1e6:.0f} MB without the index, {with_index / 1e6:.0f} MB with it: {ratio}."


async def _run(workspace: Path, folder: Path, items: int, count: int) -> AsyncIterator[ReportTable]:
    with cluster() as server:
        yield await measure_quality(folder, server.socket_url(schema="quality"))
    with temporary_copy(workspace, folder, "full") as full:
        print_progress(f"Searching {items:,} prompts and {items:,} tasks ...")
        store = SqliteStore(str(full))
        rows = await measure_speed(store, count)
        await store.close()
    title = f"Ranked search of {items:,} prompts and {items:,} tasks, SQLite"
    heading = ["", "median", "p95", "processor", "p95"]
    yield rows_table(title, [heading, *rows], measure_size(workspace, folder))


async def _collect(tables: AsyncIterator[ReportTable]) -> list[ReportTable]:
    return [found async for found in tables]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_search", description=__doc__)
    parser.add_argument(
        "--items", type=int, default=100_000, help="number of prompts and number of tasks (default: 100000)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer measurements")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    options = parser.parse_args()
    count = 60 if options.quick else 400
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=CACHE))
    try:
        workspace = folder / "workspace.db"
        build_workspace(workspace, options.items)
        found = asyncio.run(_collect(_run(workspace, folder, options.items, count)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print_tables(found, as_json=options.json)


if __name__ == "__main__":
    main()
