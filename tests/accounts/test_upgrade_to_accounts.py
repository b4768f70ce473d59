"""Upgrade of a database from a version without users."""

from __future__ import annotations

from pathlib import Path

import apsw

from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from dittybag.storage.sqlite.migrations.sqlite_migrations import load_migrations
from dittybag.storage.sqlite.sqlite_connections import APPLICATION_ID
from dittybag.storage.sqlite.sqlite_store import SqliteStore

#: The last schema version without users.
OLD_VERSION = 2


def create_old_database(path: Path) -> None:
    """Create a database of an older version, with a task and a session."""
    connection = apsw.Connection(str(path))
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("journal_mode", "wal")
    connection.execute(
        "CREATE TABLE migrations"
        " (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT"
    )
    for number, name, sql in load_migrations()[:OLD_VERSION]:
        connection.execute(sql)
        connection.execute("INSERT INTO migrations VALUES (?, ?, 1)", (number, name))
    connection.pragma("user_version", OLD_VERSION)
    connection.execute(
        "INSERT INTO tasks (user, title, priority, energy, time_estimate, created_at, updated_at, version)"
        " VALUES ('dev-user', 'Old', 3, 'medium', '1hr', 1, 1, 1)"
    )
    connection.execute("INSERT INTO sessions VALUES ('s', x'00', 1)")
    connection.close()


async def test_an_old_database_is_migrated_and_keeps_its_data(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    create_old_database(path)
    workspace = Workspace(SqliteStore(str(path)))
    try:
        project = await workspace.projects.find(DEFAULT_PROJECT)
        assert (await workspace.tasks.get(Caller(project.id, "tests"), 1)).title == "Old"
        await workspace.accounts.add_user("alice", actor="tests")
        created = await workspace.accounts.create_token("alice", "read", actor="tests")
        assert await workspace.accounts.authenticate(created.text, project.id) is not None
    finally:
        await workspace.store.close()
    connection = apsw.Connection(str(path))
    assert connection.pragma("user_version") == NEWEST_SCHEMA
    assert connection.execute("SELECT count(*) FROM sessions").get == 1
    connection.close()
