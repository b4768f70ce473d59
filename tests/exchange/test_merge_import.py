"""Import into a workspace that is not empty: one batch of ordinary writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dittybag.domain.entities import Kind
from dittybag.domain.errors import Invalid, ProjectNotFound, SeveralConflicts
from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import ChangeQuery
from dittybag.exchange.import_sources import FileSource, SourceEntity, SourceEntry, entity_of
from dittybag.services.caller import Caller
from dittybag.services.history_service import UndoSelection
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.exchange.exchange_data import fill_database
from tests.exchange.exchange_fixtures import (
    ACTOR,
    check_consistency,
    dump_tables,
    export_folder,
    export_json,
    import_into,
    open_workspace,
    rows,
)

PROMPTS = "SELECT name, title, content FROM prompts ORDER BY number"


def write_export(path: Path, **sections: Any) -> Path:
    path.write_bytes(msgspec.json.encode({"format": "dittybag", "version": 1, **sections}))
    return path


def prompt_fields(name: str, content: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "title": name.upper(), "content": content, **more}


def resource_fields(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "uri": f"x:{name}", "mime_type": "text/plain", "text": text, **more}


CONFLICTING_PROMPTS = [
    prompt_fields("new", "n"),
    prompt_fields("one", "other"),
    prompt_fields("three", "x", title="TWO"),
]


def count_batches(database: Path) -> int:
    """Return in how many batches everything was imported."""
    return len(rows(database, f"SELECT DISTINCT coalesce(batch, seq) FROM changes WHERE actor = '{ACTOR}'"))


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
    await export_json(database, tmp_path / "a.json")
    result = await import_into(database, tmp_path / "a.json")
    assert result.skipped == {"project": 0, "prompt": 2, "resource": 1, "task": 1}
    assert not any(result.created.values())
    await export_folder(database, tmp_path / "folder")
    assert not any((await import_into(database, tmp_path / "folder")).created.values())
    assert dump_tables(database) == before


async def test_all_conflicts_are_reported_and_nothing_is_changed(database: Path, tmp_path: Path) -> None:
    source = write_export(
        tmp_path / "more.json",
        prompts=CONFLICTING_PROMPTS,
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
        prompts=CONFLICTING_PROMPTS,
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
    check_consistency(database)


@pytest.mark.parametrize("is_empty", [False, True])
async def test_one_undo_reverts_an_import(database: Path, tmp_path: Path, is_empty: bool) -> None:
    await fill_database(tmp_path / "other.db", 60, 10, 30)
    await export_json(tmp_path / "other.db", tmp_path / "other.json")
    if is_empty:
        database = tmp_path / "empty.db"
        await SqliteStore(str(database)).close()
    before = dump_tables(database)[:4]
    await import_into(database, tmp_path / "other.json", on_conflict="replace")
    assert count_batches(database) == 2 - is_empty
    async with open_workspace(database) as workspace:
        newest = (await workspace.history.page(Caller(1, "me"), ChangeQuery(project=1, limit=1)))[0]
        await workspace.history.undo(Caller(1, "me"), UndoSelection(seq=newest.seq))
    assert dump_tables(database)[:4] == before
    check_consistency(database)


async def test_everything_can_be_imported_into_one_project(database: Path, tmp_path: Path) -> None:
    await export_json(database, tmp_path / "a.json")
    with pytest.raises(ProjectNotFound):
        await import_into(database, tmp_path / "a.json", project="side")
    async with open_workspace(database) as workspace:
        side = await workspace.projects.create("side", actor="me")
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


MOMENT = "2026-01-01T00:00:00Z"
MILK = {"id": 50, "title": "Milk", "created_at": MOMENT}
CAKE = {"id": 60, "title": "Cake", "created_at": MOMENT}
TASKS = """SELECT id, title, project, project_id, status, blocked_by, parent, assignee, labels, links,
                  comments FROM tasks ORDER BY id"""


def team_tasks() -> list[dict[str, Any]]:
    """Return tasks of which some refer to later ones, and some to earlier ones."""
    return [
        {
            "id": 70,
            "title": "Release",
            "created_at": MOMENT,
            "blocked_by": [90],
            "shared": True,
            "project": "side",
        },
        {
            "id": 80,
            "title": "Test",
            "created_at": MOMENT,
            "status": "doing",
            "parent": 70,
            "blocked_by": [90, 12],
            "assignee": "ann",
            "labels": ["ci"],
            "links": ["file:///plan"],
            "comments": [{"at": "2026-01-02T00:00:00.000001Z", "author": "ann", "text": "Began"}],
        },
        {"id": 90, "title": "Build", "created_at": MOMENT, "parent": 70},
    ]


async def test_edges_between_tasks_get_the_new_ids(database: Path, tmp_path: Path) -> None:
    source = write_export(tmp_path / "tasks.json", projects=[{"name": "side"}], tasks=team_tasks())
    result = await import_into(database, source)
    assert (result.created["task"], result.created["project"]) == (3, 1)
    note = "Removed one reference in blocked_by and parent to tasks that are not in the source"
    assert result.notes == [note]
    [(side,)] = rows(database, "SELECT id FROM projects WHERE name = 'side'")
    comments = '[{"at":1767312000000001,"author":"ann","text":"Began"}]'
    assert rows(database, TASKS)[1:] == [
        (2, "Release", "side", side, "todo", "[4]", None, None, "[]", "[]", "[]"),
        (3, "Test", None, None, "doing", "[4]", 2, "ann", '["ci"]', '["file:///plan"]', comments),
        (4, "Build", None, None, "todo", "[]", 2, None, "[]", "[]", "[]"),
    ]
    assert count_batches(database) == 2
    check_consistency(database)


async def test_new_tasks_refer_to_the_existing_equal_tasks(database: Path, tmp_path: Path) -> None:
    source = write_export(tmp_path / "tasks.json", tasks=[{**CAKE, "blocked_by": [50]}, MILK])
    result = await import_into(database, source)
    assert (result.created["task"], result.skipped["task"]) == (1, 1)
    assert rows(database, "SELECT id, title, blocked_by, parent FROM tasks ORDER BY id") == [
        (1, "Milk", "[]", None),
        (2, "Cake", "[1]", None),
    ]


async def test_tasks_that_differ_only_in_their_edges_are_different(database: Path, tmp_path: Path) -> None:
    await import_into(database, write_export(tmp_path / "a.json", tasks=[MILK, CAKE]))
    blocked = write_export(tmp_path / "b.json", tasks=[MILK, {**CAKE, "blocked_by": [50]}])
    for created in (1, 0):
        assert (await import_into(database, blocked)).created["task"] == created
    assert rows(database, "SELECT id, blocked_by FROM tasks ORDER BY id") == [
        (1, "[]"),
        (2, "[]"),
        (3, "[1]"),
    ]


async def test_an_import_cannot_close_a_cycle_with_existing_tasks(database: Path, tmp_path: Path) -> None:
    # In the workspace, the cake waits for the eggs, and these for the milk.
    milk = {"id": 1, "title": "Milk", "created_at": MOMENT}
    eggs = {"id": 2, "title": "Eggs", "created_at": MOMENT, "blocked_by": [1]}
    cake = {"id": 3, "title": "Cake", "created_at": MOMENT, "blocked_by": [2]}
    await import_into(database, write_export(tmp_path / "a.json", tasks=[milk, eggs, cake]))
    before = dump_tables(database)
    # In the file, the eggs wait for nothing, so the cake may be a part of the milk.
    part = {"id": 4, "title": "Part", "created_at": MOMENT, "parent": 1, "blocked_by": [3]}
    source = write_export(tmp_path / "b.json", tasks=[milk, {**eggs, "blocked_by": []}, cake, part])
    problem = "with the tasks of this workspace, these tasks would wait for each other: 5 → 3 → 2 → 1 → 5"
    with pytest.raises(Invalid, match=problem):
        await import_into(database, source)
    assert dump_tables(database) == before


async def test_shared_tasks_move_to_the_project_of_an_import(database: Path, tmp_path: Path) -> None:
    source = write_export(tmp_path / "tasks.json", projects=[{"name": "side"}], tasks=team_tasks())
    for created in (3, 0):
        result = await import_into(database, source, project="default")
        assert result.created["task"] == created
    assert [row[2:4] for row in rows(database, TASKS)[1:]] == [("default", 1), (None, None), (None, None)]
    assert rows(database, "SELECT name FROM projects") == [("default",)]


async def test_a_shared_task_of_the_default_project_needs_no_list_of_projects(
    database: Path, tmp_path: Path
) -> None:
    task = {"title": "Shared", "created_at": MOMENT, "project": "default", "shared": True}
    source = write_export(tmp_path / "tasks.json", tasks=[task])
    for target in (database, tmp_path / "empty.db"):
        await import_into(target, source)
        sql = "SELECT project, project_id FROM tasks WHERE title = 'Shared'"
        assert rows(target, sql) == [("default", 1)]


async def test_all_edges_of_a_large_workspace_are_merged_once(database: Path, tmp_path: Path) -> None:
    await fill_database(tmp_path / "other.db", 2, 2, 300)
    await export_json(tmp_path / "other.db", tmp_path / "other.json")
    result = await import_into(database, tmp_path / "other.json")
    assert result.created["task"] > 280
    titles = """SELECT a.title, a.created_at, b.title, b.created_at, part FROM task_edges
                JOIN tasks AS a ON a.id = task JOIN tasks AS b ON b.id = blocker ORDER BY 1, 2, 3, 4, 5"""
    assert rows(database, titles) == rows(tmp_path / "other.db", titles)
    check_consistency(database)
    before = dump_tables(database)
    again = await import_into(database, tmp_path / "other.json")
    assert (again.created["task"], again.skipped["task"]) == (0, result.created["task"])
    await export_json(database, tmp_path / "own.json")
    assert not any((await import_into(database, tmp_path / "own.json")).created.values())
    assert dump_tables(database) == before


class TitledPrompts(FileSource):
    """Prompts with titles but without names, as in prompt-store."""

    def __init__(self, *titles: str) -> None:
        super().__init__()
        self._titles = titles

    def entities(self, kind: Kind) -> list[SourceEntry[SourceEntity]]:
        if kind != "prompt":
            return []
        return [
            (title, SourceEntity(entity_of(Prompt, title=title, content=title))) for title in self._titles
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
    prompts = [
        prompt_fields(name, name, created_at=f"2026-01-0{day}T00:00:00Z") for day, name in enumerate(names, 1)
    ]
    await import_into(tmp_path / "other.db", write_export(tmp_path / "other.json", prompts=prompts))
    await export_folder(tmp_path / "other.db", tmp_path / "folder")
    await import_into(database, tmp_path / "folder")
    assert [name for name, _, _ in rows(database, PROMPTS)] == ["one", "two", *names]
