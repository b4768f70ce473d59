"""The tables with the numbers of prompts and of tags, which triggers maintain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import apsw

#: What each table must contain. From the prompts themselves: the index of tags may be damaged, too.
_EXPECTED: Final = {
    "prompt_counts": "SELECT project, count(*) FROM prompts GROUP BY project",
    "tag_counts": """SELECT project, value, count(*) FROM prompts, json_each(prompts.tags)
                     GROUP BY project, value""",
}
_LABELS: Final = {"prompt_counts": "prompts", "tag_counts": "tags"}


def wrong_counts(connection: apsw.Connection) -> Iterator[str]:
    """Return what is counted wrongly: `prompts` or `tags`."""
    for table, expected in _EXPECTED.items():
        wanted, found = (set(connection.execute(sql)) for sql in (expected, f"SELECT * FROM {table}"))
        if wanted != found:
            yield _LABELS[table]


def rebuild_counts(connection: apsw.Connection) -> None:
    """Count again."""
    for table, expected in _EXPECTED.items():
        connection.execute(f"DELETE FROM {table}")
        connection.execute(f"INSERT INTO {table} {expected}")
