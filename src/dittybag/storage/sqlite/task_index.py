"""Folds the texts of all tasks and their search index again, for files from before accents were ignored."""

from __future__ import annotations

import apsw

from dittybag.domain.text import fold_accents
from dittybag.storage.sql.task_refolding import refold_tasks
from dittybag.storage.sqlite.sqlite_driver import SqliteDriver, run_synchronously


def refold_index(connection: apsw.Connection) -> None:
    """Fold the texts of all tasks again."""
    run_synchronously(_refold_index(SqliteDriver(connection)))


async def _refold_index(driver: SqliteDriver) -> None:
    async for number, title, notes in refold_tasks(driver):
        await driver.run("DELETE FROM task_index WHERE rowid = $1", number)
        text = fold_accents(f"{title}\n{notes or ''}")
        await driver.run("INSERT INTO task_index (rowid, text) VALUES ($1, $2)", number, text)
