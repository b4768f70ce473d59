"""The trigrams by which a large index is searched."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from dittybag.storage.sqlite.migrations.sqlite_migrations import migrate
from dittybag.storage.sqlite.trigram_choice import choose_trigrams

ROWS = 60_000
#: In all rows, in half of them, in one of eight, and in one of a thousand.
TEXTS = {"aaa": 1, "bbb": 2, "ccc": 8, "ddd": 1000}


@pytest.fixture
def connection(tmp_path: Path) -> apsw.Connection:
    path = str(tmp_path / "store.db")
    migrate(path)
    connection = apsw.Connection(path)
    columns = " || ".join(f"iif(value % {share} = 0, '{text} ', '')" for text, share in TEXTS.items())
    connection.execute(
        f"""INSERT INTO prompt_index (rowid, text)
            WITH RECURSIVE numbers (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM numbers LIMIT {ROWS})
            SELECT value, {columns} FROM numbers;
            INSERT INTO prompt_index (prompt_index) VALUES ('optimize')"""
    )
    return connection


def test_the_rarest_trigrams_are_chosen_as_long_as_they_are_worth_it(connection: apsw.Connection) -> None:
    assert choose_trigrams(connection, "prompt_index", ["aaa", "bbb", "ccc", "ddd"]) == ["ddd", "ccc", "bbb"]
    assert choose_trigrams(connection, "prompt_index", ["bbb", "aaa", "ccc"]) == ["ccc", "bbb"]
    # A trigram that no row has is the rarest.
    assert choose_trigrams(connection, "prompt_index", ["aaa", "ccc", "zzz"])[0] == "zzz"
    connection.close()


def test_all_trigrams_of_a_short_text_or_a_small_index_are_used(connection: apsw.Connection) -> None:
    assert choose_trigrams(connection, "prompt_index", ["aaa", "ccc"]) == ["aaa", "ccc"]
    assert choose_trigrams(connection, "task_index", ["aaa", "ccc", "ddd"]) == ["aaa", "ccc", "ddd"]
    connection.close()
