"""Folds the texts of all tasks again, for databases from before accents were ignored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from dittybag.domain.text import fold_accents
from dittybag.storage.sql.entity_rows import folded_or_none
from dittybag.storage.sql.sql_driver import Row, SqlDriver

#: The number of tasks that are folded at a time.
_BATCH: Final = 500


async def refold_tasks(driver: SqlDriver) -> AsyncIterator[Row]:
    """Fold the texts of all tasks again. Yields the id, title and notes of those that are not ASCII."""
    sql = f"SELECT id, title, notes FROM tasks WHERE id > $1 ORDER BY id LIMIT {_BATCH}"
    last = 0
    while rows := await driver.rows(sql, last):
        last = rows[-1][0]
        for number, title, notes in rows:
            if not (title.isascii() and (notes or "").isascii()):
                folded = (folded_or_none(text, fold_accents) for text in (title, notes))
                update = "UPDATE tasks SET folded_title = $1, folded_notes = $2 WHERE id = $3"
                await driver.run(update, *folded, number)
                yield number, title, notes
