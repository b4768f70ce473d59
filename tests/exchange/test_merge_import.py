"""Import into a workspace that is not empty: one batch of ordinary writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dittybag.domain.errors import ProjectNotFound, SeveralConflicts
from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import ChangeQuery
from dittybag.exchange.import_sources import FileSource, SourceEntry
from dittybag.services.caller import Caller
from dittybag.services.history_service import UndoSelection
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.exchange.exchange_data import fill_database
from tests.exchange.exchange_fixtures import ACTOR, dump_tables, export_folder, export_json, import_into, rows
from tests.torture.sqlite_audit import SqliteAudit

PROMPTS = "SELECT name, title, content FROM prompts ORDER BY number"


def write_export(path: Path, **sections: Any) -> Path:
    path.write_bytes(msgspec.json.encode({"format": "dittybag", "version": 1, **sections}))
    return path


def prompt_fields(name: str, content: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "title": name.upper(), "content": content, **more}


def resource_fields(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "uri": f"x:{name}", "mime_type": "text/plain", "text": text, **more}


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    """A workspace with two prompts and a resource."""
    path = tmp_path / "here.db"
    start = write_export(
        tmp_path / "start.json",
        prompts=[prompt_fields("one", "first"), prompt_fields("two", "second")],
        resources=[resource_fields("doc", "old")],
        tasks=[{"title": "Milk", "created_at": "2026-01-01T00:00:00Z"}],
    )
    await import_into(path, start)
    return path


async def test_existing_entities_are_skipped(database: Path, tmp_path: Path) -> None:
    before = dump_tables(database)
    for history in (False, True):
        await export_json(database, tmp_path / "a.json", history=history)
        result = await import_into(database, tmp_path / "a.json")
        assert result.skipped == {"project": 0, "prompt": 2, "resource": 1, "task": 1}
        assert not any(result.created.values())
    await export_folder(database, tmp_path / "folder")
    assert not any((await import_into(database, tmp_path / "folder")).created.values())
    assert dump_tables(database) == before


async def test_all_conflicts_are_reported_and_nothing_is_changed(database: Path, tmp_path: Path) -> None:
    source = write_export(
        tmp_path / "more.json",
        prompts=[
            prompt_fields("new", "n"),
            prompt_fields("one", "other"),
            prompt_fields("three", "x", title="TWO"),
        ],
        resources=[resource_fields("doc", "new"), resource_fields("paper", "p", uri="x:doc")],
    )
    before = dump_tables(database)
    with pytest.raises(SeveralConflicts) as caught:
        await import_into(database, source)
    assert [type(conflict).__name__ for conflict in caught.value.conflicts] == [
        "NameTaken",
        "TitleTaken",
        "NameTaken",
        "UriTaken",
    ]
    preview = await import_into(database, source, dry_run=True)
    assert len(preview.conflicts) == 4
    assert preview.created["prompt"] == 1
    assert dump_tables(database) == before


@pytest.mark.parametrize(
    ("choice", "prompts", "resources"),
    [
        (
            "skip",
            [("one", "ONE", "first"), ("two", "TWO", "second"), ("new", "NEW", "n")],
            [("doc", "x:doc", 3)],
        ),
        (
            "replace",
            [("one", "ONE", "other"), ("three", "TWO", "x"), ("new", "NEW", "n")],
            [("doc", "x:doc", 5)],
        ),
        (
            "rename",
            [
                ("one", "ONE", "first"),
                ("two", "TWO", "second"),
                ("new", "NEW", "n"),
                ("one-2", "ONE (2)", "other"),
                ("three", "TWO (2)", "x"),
            ],
            [("doc", "x:doc", 3), ("doc-2", "x:doc-2", 5)],
        ),
    ],
)
async def test_on_conflict_decides_what_happens_to_conflicts(
    database: Path, tmp_path: Path, choice: str, prompts: list[Any], resources: list[Any]
) -> None:
    source = write_export(
        tmp_path / "more.json",
        prompts=[
            prompt_fields("new", "n"),
            prompt_fields("one", "other"),
            prompt_fields("three", "x", title="TWO"),
        ],
        resources=[resource_fields("doc", "newer")],
    )
    before = dump_tables(database)
    preview = await import_into(database, source, on_conflict=choice, dry_run=True)
    assert dump_tables(database) == before
    done = await import_into(database, source, on_conflict=choice)
    assert (done.created, done.replaced, done.skipped) == (preview.created, preview.replaced, preview.skipped)
    assert list(map(str, done.conflicts)) == list(map(str, preview.conflicts))
    assert rows(database, PROMPTS) == prompts
    assert rows(database, "SELECT name, uri, size FROM resources ORDER BY number") == resources
    audit = SqliteAudit(database)
    audit.check()
    audit.close()


async def test_one_undo_reverts_an_import(database: Path, tmp_path: Path) -> None:
    await fill_database(tmp_path / "other.db", 60, 10, 30)
    await export_json(tmp_path / "other.db", tmp_path / "other.json")
    before = dump_tables(database)[:4]
    await import_into(database, tmp_path / "other.json", on_conflict="replace")
    batches = rows(database, f"SELECT DISTINCT coalesce(batch, seq) FROM changes WHERE actor = '{ACTOR}'")
    assert len(batches) == 2
    workspace = Workspace(SqliteStore(str(database)))
    newest = (await workspace.history.page(Caller(1, "me"), ChangeQuery(project=1, limit=1)))[0]
    await workspace.history.undo(Caller(1, "me"), UndoSelection(seq=newest.seq))
    await workspace.store.close()
    assert dump_tables(database)[:4] == before
    audit = SqliteAudit(database)
    audit.check()
    audit.close()


async def test_an_import_into_an_empty_workspace_can_be_undone(tmp_path: Path) -> None:
    await fill_database(tmp_path / "a.db", 40, 10, 20)
    await export_json(tmp_path / "a.db", tmp_path / "a.json", history=False)
    await import_into(tmp_path / "b.db", tmp_path / "a.json")
    workspace = Workspace(SqliteStore(str(tmp_path / "b.db")))
    newest = (await workspace.history.page(Caller(1, "me"), ChangeQuery(project=1, limit=1)))[0]
    await workspace.history.undo(Caller(1, "me"), UndoSelection(seq=newest.seq))
    await workspace.store.close()
    assert rows(tmp_path / "b.db", "SELECT name FROM projects") == [("default",)]
    for table in ("prompts", "resources", "tasks"):
        assert rows(tmp_path / "b.db", f"SELECT * FROM {table}") == []


async def test_everything_can_be_imported_into_one_project(database: Path, tmp_path: Path) -> None:
    await export_json(database, tmp_path / "a.json")
    with pytest.raises(ProjectNotFound):
        await import_into(database, tmp_path / "a.json", project="side")
    workspace = Workspace(SqliteStore(str(database)))
    side = await workspace.projects.create("side", actor="me")
    await workspace.store.close()
    result = await import_into(database, tmp_path / "a.json", project="side")
    assert (result.created["prompt"], result.created["resource"], result.skipped["task"]) == (2, 1, 1)
    imported = rows(database, f"SELECT id, name FROM prompts WHERE project = {side.id} ORDER BY number")
    existing = rows(database, "SELECT id, name FROM prompts WHERE project = 1 ORDER BY number")
    assert [name for _, name in imported] == [name for _, name in existing]
    assert not {key for key, _ in imported} & {key for key, _ in existing}


async def test_tasks_get_new_ids_and_equal_tasks_are_skipped(database: Path, tmp_path: Path) -> None:
    milk = {"id": 1, "title": "Milk", "created_at": "2026-01-01T00:00:00Z"}
    source = write_export(
        tmp_path / "tasks.json", tasks=[milk, {**milk, "id": 2}, {**milk, "id": 3, "notes": "Oat"}]
    )
    result = await import_into(database, source)
    assert (result.created["task"], result.skipped["task"]) == (2, 1)
    assert rows(database, "SELECT id, notes FROM tasks ORDER BY id") == [(1, None), (2, None), (3, "Oat")]
    again = await import_into(database, source)
    assert (again.created["task"], again.skipped["task"]) == (0, 3)


class TitledPrompts(FileSource):
    """Prompts with titles but without names, as in prompt-store."""

    def __init__(self, *titles: str) -> None:
        super().__init__()
        self._titles = titles

    def prompts(self) -> list[SourceEntry[Prompt]]:
        return [
            (
                title,
                Prompt(
                    number=0,
                    id="",
                    project=0,
                    name="",
                    title=title,
                    content=title,
                    created_at=0,
                    updated_at=0,
                ),
            )
            for title in self._titles
        ]


async def test_missing_names_are_derived_from_titles(database: Path) -> None:
    await import_into(database, TitledPrompts("One?", "Ähnlich", "One!"))
    assert rows(database, PROMPTS)[2:] == [
        ("one-2", "One?", "One?"),
        ("ahnlich", "Ähnlich", "Ähnlich"),
        ("one-3", "One!", "One!"),
    ]
    assert (await import_into(database, TitledPrompts("One?", "Ähnlich", "One!"))).skipped["prompt"] == 3


async def test_a_folder_is_imported_in_the_order_of_creation(database: Path, tmp_path: Path) -> None:
    names = ["zebra", "apple", "mango"]
    await import_into(
        tmp_path / "other.db",
        write_export(tmp_path / "other.json", prompts=[prompt_fields(n, n) for n in names]),
    )
    await export_folder(tmp_path / "other.db", tmp_path / "folder")
    await import_into(database, tmp_path / "folder")
    assert [name for name, _, _ in rows(database, PROMPTS)] == ["one", "two", *names]
