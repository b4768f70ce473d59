"""The schema file, and the migrations that it summarises."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import apsw

from dittybag.domain.queries import PromptQuery
from dittybag.services.search_service import RankedQuery
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from dittybag.storage.sqlite import integrity_check
from dittybag.storage.sqlite.migrations.sqlite_migrations import load_migrations, migrate
from dittybag.storage.sqlite.snapshots import open_snapshot
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.storage.sqlite.schema import FILE, migrated_schema
from tests.storage_contract.store_session import open_session


def test_the_schema_file_equals_the_schema_after_all_migrations() -> None:
    assert FILE.read_text(encoding="utf-8") == migrated_schema(), (
        "after changing a migration, run: python -m tests.storage.sqlite.schema"
    )


def test_the_schema_file_contains_every_object_of_the_migrations() -> None:
    created = {
        name
        for _, _, sql in load_migrations()
        for name in re.findall(r"^CREATE (?:VIRTUAL )?(?:TABLE|INDEX|TRIGGER) (\w+)", sql, re.MULTILINE)
    }
    shown = set(
        re.findall(r"^CREATE (?:VIRTUAL )?(?:TABLE|INDEX|TRIGGER) (\w+)", FILE.read_text(), re.MULTILINE)
    )
    assert shown == created | {"migrations"}


def test_migrations_are_numbered_without_gaps_up_to_the_newest_version() -> None:
    assert [number for number, _, _ in load_migrations()] == list(range(1, NEWEST_SCHEMA + 1))


def test_a_new_file_records_each_migration_once(tmp_path: Path) -> None:
    path = str(tmp_path / "new.db")
    migrate(path)
    migrate(path)
    connection = apsw.Connection(path)
    recorded = connection.execute("SELECT number, name FROM migrations ORDER BY number").fetchall()
    assert recorded == [(number, name) for number, name, _ in load_migrations()]
    assert connection.pragma("user_version") == NEWEST_SCHEMA
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


def _revert_kept_counts(connection: apsw.Connection) -> None:
    """Undo the migration that keeps counts, and those after it."""
    connection.execute("DROP TABLE prompt_uses; DROP TABLE seen_clients")
    connection.execute("DROP INDEX changes_by_batch")
    for table in ("prompt_counts", "tag_counts"):
        connection.execute(
            f"""DROP TABLE {table}; DROP TRIGGER {table}_after_insert; DROP TRIGGER {table}_after_delete;
                DROP TRIGGER {table}_after_update"""
        )
    connection.execute("ALTER TABLE projects DROP COLUMN pins; DELETE FROM migrations WHERE number >= 11")


def _revert_shared_tasks(connection: apsw.Connection) -> None:
    """Undo the migration that made tasks shared, and those after it."""
    _revert_kept_counts(connection)
    triggers = connection.execute(
        """SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'tasks'
           AND (name LIKE 'open_%' OR name LIKE 'task_edges_%' OR name LIKE 'claims_%')"""
    )
    for (name,) in list(triggers):
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(
        """DROP VIEW restricted_projects;
           DROP TABLE task_edges; DROP TABLE open_tasks; DROP TABLE open_labels; DROP TABLE claims;
           DROP INDEX tasks_in_order; DROP INDEX tasks_by_project;
           DROP INDEX shared_tasks; DROP INDEX shared_tasks_by_user;
           CREATE INDEX tasks_in_order ON tasks (user, priority DESC, id, completed_at);
           CREATE INDEX tasks_by_project ON tasks (user, project, priority DESC, id, completed_at);
           DELETE FROM migrations WHERE number = 10"""
    )
    added = ("status", "project_id", "blocked_by", "parent", "assignee", "labels", "links", "comments")
    for column in added:
        connection.execute(f"ALTER TABLE tasks DROP COLUMN {column}")


async def test_tasks_from_before_accents_were_ignored_are_found(tmp_path: Path) -> None:
    path = str(tmp_path / "old.db")
    store = SqliteStore(path)
    session = await open_session(store)
    await session.task("R\u00e9server un CAF\u00c9", notes="Cafe\u0301")
    await session.task("Plain")
    await store.close()
    with closing(apsw.Connection(path)) as connection:
        _revert_shared_tasks(connection)
        connection.execute(
            """UPDATE tasks SET folded_title = 'r\u00e9server un caf\u00e9', folded_notes = NULL WHERE id = 1;
               DELETE FROM task_index WHERE rowid = 1;
               INSERT INTO task_index (rowid, text) SELECT id, folded_title || char(10) || lower(notes)
                   FROM tasks WHERE id = 1;
               DROP TABLE pending_purges;
               ALTER TABLE changes DROP COLUMN interface;
               DROP TABLE word_frequencies;
               DROP TABLE word_index;
               DELETE FROM migrations WHERE number >= 6"""
        )
        connection.pragma("user_version", 5)
    store = SqliteStore(path)
    session = await open_session(store)
    assert (await session.workspace.tasks.search(session.caller, "cafe reserver"))[0] == 1
    assert (await session.workspace.tasks.search(session.caller, "cafe", title=False))[0] == 1
    await store.check()
    await store.close()


async def test_prompts_from_before_counts_were_kept_are_counted(tmp_path: Path) -> None:
    path = str(tmp_path / "old.db")
    store = SqliteStore(path)
    session = await open_session(store)
    for number in range(3):
        await session.prompt(f"p{number}", tags=["all", f"t{number}"])
    await store.close()
    with closing(apsw.Connection(path)) as connection:
        _revert_kept_counts(connection)
        connection.pragma("user_version", 10)
    store = SqliteStore(path)
    session = await open_session(store)
    await session.delete_prompt("p0")
    prompts = session.workspace.prompts
    assert (await prompts.page(session.caller, PromptQuery(project=session.project, limit=1))).total == 2
    counted = [(tag.name, tag.prompt_count) for tag in await prompts.tags(session.caller)]
    assert counted == [("all", 2), ("t1", 1), ("t2", 1)]
    await store.close()
    with open_snapshot(path) as connection:
        assert integrity_check.check_integrity(connection, lambda *progress: None) == []


async def test_entities_from_before_the_ranked_search_are_found(tmp_path: Path) -> None:
    path = str(tmp_path / "old.db")
    store = SqliteStore(path)
    session = await open_session(store)
    await session.prompt("p", "Deployments", tags=["tagged"])
    await session.resource("r", "deploying")
    await session.resource("binary", b"deploying")
    await session.task("Deploy", notes="soon")
    await store.close()
    with closing(apsw.Connection(path)) as connection:
        _revert_shared_tasks(connection)
        connection.execute(
            """DROP TABLE word_frequencies; DROP TABLE word_index; DELETE FROM migrations WHERE number >= 9"""
        )
        connection.pragma("user_version", 8)
    with open_snapshot(path) as connection:
        assert integrity_check.check_integrity(connection, lambda *progress: None) == []
    store = SqliteStore(path)
    session = await open_session(store)
    page = await session.workspace.search.ranked(session.caller, RankedQuery("deployed"))
    assert {hit.kind for hit in page.hits} == {"prompt", "resource", "task"}
    assert (await session.workspace.search.ranked(session.caller, RankedQuery("tagged"))).total == 1
    await store.close()
    with open_snapshot(path) as connection:
        assert integrity_check.check_integrity(connection, lambda *progress: None) == []
