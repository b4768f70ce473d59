"""Workspaces with as many prompts as tasks, and a few resources, on SQLite.

They are written through Dittybag's storage, so that the tables, the change log and the indexes are those of a
workspace that grew by itself: `python -m benchmarks.scale_data FILE PROMPTS`.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path
from typing import Final

from benchmarks.report_output import print_progress
from benchmarks.sample_data import TextGenerator
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.domain.resources import Resource
from dittybag.storage.sqlite.sqlite_connections import connect
from dittybag.storage.sqlite.sqlite_store import SqliteStore

#: One resource for this many prompts.
PROMPTS_PER_RESOURCE: Final = 50

_PER_TRANSACTION: Final = 2000


def build_workspace(file: Path, prompts: int) -> None:
    """Fill a new workspace."""
    asyncio.run(_fill(file, prompts))
    # Closing the store waits only briefly. The file is renamed, so nothing may be left in the log.
    connection = connect(str(file), writable=True)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


async def _fill(file: Path, prompts: int) -> None:
    store = SqliteStore(str(file))
    generator = TextGenerator("prompts")
    words = iter(generator.place_search_words(prompts))
    numbers = itertools.count(1)

    async def work(transaction: Transaction) -> None:
        project = await transaction.projects.by_name(DEFAULT_PROJECT)
        assert project is not None
        for extra in itertools.islice(words, _PER_TRANSACTION):
            await transaction.write("create", None, generator.prompt(project.id, transaction.new_id(), extra))
            await transaction.write("create", None, generator.task(extra))
            if next(numbers) % PROMPTS_PER_RESOURCE == 0:
                await _add_resource(transaction, generator, project.id)

    try:
        for done in range(0, prompts, _PER_TRANSACTION):
            if done % (25 * _PER_TRANSACTION) == 0:
                print_progress(f"Filling {file.name}: {done:,} of {prompts:,} ...")
            await store.write(work, actor="benchmark")
    finally:
        await store.close()


async def _add_resource(transaction: Transaction, generator: TextGenerator, project: int) -> None:
    title = generator.title()
    name = title.lower().replace(" ", "-")
    content = generator.text(100).encode()
    resource = Resource(
        number=0,
        id=transaction.new_id(),
        project=project,
        name=name,
        uri=f"file:///{name}.md",
        title=title,
        mime_type="text/markdown",
        sha256=await transaction.store_content(content),
        size=len(content),
        created_at=transaction.now,
        updated_at=transaction.now,
    )
    await transaction.write("create", None, resource)


if __name__ == "__main__":
    build_workspace(Path(sys.argv[1]), int(sys.argv[2]))
