"""The schema, and the migrations that lead to it."""

from __future__ import annotations

import re
from pathlib import Path

import apsw

from dittybag.storage.sqlite.migrations import NEWEST, load_migrations, migrate
from tests.storage.sqlite.schema import FILE, migrated_schema


def test_the_schema_file_is_what_all_migrations_lead_to() -> None:
    assert FILE.read_text(encoding="utf-8") == migrated_schema(), (
        "after a change of the migrations, run: python -m tests.storage.sqlite.schema"
    )


def test_the_schema_file_shows_every_object_that_the_migrations_make() -> None:
    made = {
        name
        for _, _, sql in load_migrations()
        for name in re.findall(r"^CREATE (?:VIRTUAL )?(?:TABLE|INDEX|TRIGGER) (\w+)", sql, re.MULTILINE)
    }
    shown = set(
        re.findall(r"^CREATE (?:VIRTUAL )?(?:TABLE|INDEX|TRIGGER) (\w+)", FILE.read_text(), re.MULTILINE)
    )
    assert shown == made | {"migrations"}


def test_migrations_are_numbered_without_a_gap_and_the_last_is_the_newest_schema() -> None:
    assert [number for number, _, _ in load_migrations()] == list(range(1, NEWEST + 1))


def test_a_new_file_records_each_migration_once(tmp_path: Path) -> None:
    path = str(tmp_path / "new.db")
    migrate(path)
    migrate(path)
    connection = apsw.Connection(path)
    recorded = connection.execute("SELECT number, name FROM migrations ORDER BY number").fetchall()
    assert recorded == [(number, name) for number, name, _ in load_migrations()]
    assert connection.pragma("user_version") == NEWEST
    assert connection.pragma("integrity_check") == "ok"
    connection.close()
