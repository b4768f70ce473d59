"""An export that is imported into a new workspace restores its entities byte for byte."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import Project
from dittybag.domain.tasks import (
    COMMENT_LENGTH,
    LINK_LENGTH,
    MAX_COMMENTS,
    MAX_LINKS,
    NOTES_BYTES,
    Comment,
    Task,
)
from dittybag.services.caller import Caller
from dittybag.services.prompt_service import PromptAddress, PromptChange
from tests.exchange.exchange_data import NAMES, fill_database
from tests.exchange.exchange_fixtures import (
    check_consistency,
    export_folder,
    export_json,
    import_into,
    open_workspace,
    read_files,
    rows,
)
from tests.programs import GIT


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with several hundred entities with difficult content."""
    path = tmp_path_factory.mktemp("filled") / "filled.db"
    asyncio.run(fill_database(path, 300, 60, 200, seed=7))
    return path


#: The edges between tasks that exist.
EDGES = """SELECT * FROM task_edges WHERE task IN (SELECT id FROM tasks) AND blocker IN (SELECT id FROM tasks)
           ORDER BY 1, 2, 3"""


async def test_an_import_into_a_new_workspace_restores_the_current_state(
    filled: Path, tmp_path: Path
) -> None:
    exported = await export_json(filled, tmp_path / "a.json")
    result = await import_into(tmp_path / "b.db", tmp_path / "a.json")
    assert result.notes == []
    assert await export_json(tmp_path / "b.db", tmp_path / "b.json") == exported
    for kind in ("project", "prompt", "resource", "task"):
        omitted = {"number", "version", "blocked_by", "parent"}
        if kind == "project":
            omitted |= {"created_at", "updated_at"}
        columns = set(ENTITY_TYPES[kind].columns) - omitted
        key = "number" if kind in ("prompt", "resource") else "id"
        sql = f"SELECT {', '.join(sorted(columns))} FROM {ENTITY_TYPES[kind].table} ORDER BY {key}"
        assert rows(tmp_path / "b.db", sql) == rows(filled, sql)
    edges = rows(filled, EDGES)
    assert 100 < len(edges) < len(rows(filled, "SELECT * FROM task_edges"))
    assert rows(tmp_path / "b.db", "SELECT * FROM task_edges ORDER BY 1, 2, 3") == edges
    check_consistency(tmp_path / "b.db")
    batches = rows(tmp_path / "b.db", "SELECT DISTINCT coalesce(batch, seq) FROM changes")
    assert len(batches) == 2


async def test_a_folder_round_trips(filled: Path, tmp_path: Path) -> None:
    await export_folder(filled, tmp_path / "one")
    await import_into(tmp_path / "b.db", tmp_path / "one")
    await export_folder(tmp_path / "b.db", tmp_path / "two")
    assert read_files(tmp_path / "one") == read_files(tmp_path / "two")
    check_consistency(tmp_path / "b.db")


async def write_tasks(database: Path, work: Callable[[Transaction, Project], Awaitable[None]]) -> None:
    """Run `work` with a new project `team`."""

    async def write(transaction: Transaction) -> None:
        project = await transaction.write(
            "create", None, Project(id=0, name="team", created_at=1, updated_at=1)
        )
        assert project is not None
        await work(transaction, project)

    async with open_workspace(database) as workspace:
        await workspace.store.write(write, actor="me")


async def create_task(transaction: Transaction, **fields: Any) -> Task:
    task = Task(id=0, user="me", created_at=1, updated_at=1, **{"title": "Task", **fields})
    stored = await transaction.write("create", None, task)
    assert stored is not None
    return stored


async def update_task(transaction: Transaction, task: Task, **fields: Any) -> Task:
    changed = replace(task, version=task.version + 1, **fields)
    await transaction.write("update", task, changed)
    return changed


async def test_an_exported_project_takes_its_tasks_along_but_no_references_to_others(
    tmp_path: Path,
) -> None:
    async def work(transaction: Transaction, team: Project) -> None:
        inside: dict[str, Any] = {"project": "team", "project_id": team.id}
        private = await create_task(transaction, title="Private")
        gone = await create_task(transaction, title="Gone", **inside)
        whole = await create_task(transaction, title="Whole", blocked_by=(private.id, gone.id), **inside)
        await create_task(transaction, title="Named", project="team", parent=whole.id)
        other = Project(id=0, name="other", created_at=1, updated_at=1)
        stored = await transaction.write("create", None, other)
        assert stored is not None
        moved = await create_task(transaction, title="Moved", project="other", project_id=stored.id)
        await update_task(transaction, moved, parent=whole.id, **inside)
        left = await create_task(transaction, title="Left", blocked_by=(whole.id,), **inside)
        await update_task(transaction, left, project=None, project_id=None)
        await transaction.write("delete", gone, None)

    await write_tasks(tmp_path / "a.db", work)
    exported = await export_json(tmp_path / "a.db", tmp_path / "a.json", project="team")
    result = await import_into(tmp_path / "b.db", tmp_path / "a.json")
    assert result.notes == []
    assert rows(tmp_path / "b.db", "SELECT name FROM projects ORDER BY id") == [("default",), ("team",)]
    sql = "SELECT title, project, project_id IS NULL, blocked_by, parent FROM tasks ORDER BY id"
    assert rows(tmp_path / "b.db", sql) == [
        ("Whole", "team", 0, "[]", None),
        ("Named", "team", 1, "[]", 3),
        ("Moved", "team", 0, "[]", 3),
    ]
    again = await export_json(tmp_path / "b.db", tmp_path / "b.json", project="team")
    assert again == exported
    await export_folder(tmp_path / "a.db", tmp_path / "one", project="team")
    await import_into(tmp_path / "c.db", tmp_path / "one")
    await export_folder(tmp_path / "c.db", tmp_path / "two", project="team")
    assert read_files(tmp_path / "one") == read_files(tmp_path / "two")
    check_consistency(tmp_path / "b.db")


async def test_the_largest_task_round_trips_in_a_folder(tmp_path: Path) -> None:
    async def work(transaction: Transaction, team: Project) -> None:
        comment = Comment(1, "\x85" * 200, "\x85" * COMMENT_LENGTH)
        links = tuple(f"{number:02d}" + "x" * (LINK_LENGTH - 2) for number in range(MAX_LINKS))
        await create_task(
            transaction, comments=(comment,) * MAX_COMMENTS, links=links, notes="\x85" * (NOTES_BYTES // 2)
        )

    await write_tasks(tmp_path / "a.db", work)
    await export_folder(tmp_path / "a.db", tmp_path / "one")
    await import_into(tmp_path / "b.db", tmp_path / "one")
    assert rows(tmp_path / "b.db", "SELECT * FROM tasks") == rows(tmp_path / "a.db", "SELECT * FROM tasks")


async def test_a_task_is_readable_in_a_folder(tmp_path: Path) -> None:
    async def work(transaction: Transaction, team: Project) -> None:
        await create_task(transaction, title="First")
        await create_task(
            transaction,
            project="team",
            project_id=team.id,
            blocked_by=(1,),
            parent=1,
            labels=("ci", "007"),
            comments=(Comment(1_700_000_000_000_001, "ann", "Began\nit"), Comment(2, "bob", "Done")),
            notes="Text\n",
        )

    await write_tasks(tmp_path / "a.db", work)
    await export_folder(tmp_path / "a.db", tmp_path / "folder")
    [task] = (tmp_path / "folder" / "tasks").glob("*2-*")
    assert (
        task.read_text()
        == """---
id: 2
user: me
title: Task
project: team
priority: 3
energy: medium
time_estimate: "1hr"
created_at: "1970-01-01T00:00:00.000001Z"
updated_at: "1970-01-01T00:00:00.000001Z"
status: todo
shared: true
blocked_by: [1]
parent: 1
labels: [ci, "007"]
comments:
  - at: "2023-11-14T22:13:20.000001Z"
    author: ann
    text: "Began\\nit"
  - at: "1970-01-01T00:00:00.000002Z"
    author: bob
    text: Done
---
Text
"""
    )


async def test_tasks_keep_their_numbers_in_a_new_workspace_only(tmp_path: Path) -> None:
    async with open_workspace(tmp_path / "a.db") as workspace:
        caller = Caller(1, "somebody")
        for number in range(1, 6):
            await workspace.tasks.create(caller, title=f"Task {number}")
        for number in (2, 4):
            await workspace.tasks.delete(caller, number)
    await export_json(tmp_path / "a.db", tmp_path / "a.json")
    await export_folder(tmp_path / "a.db", tmp_path / "folder")
    for source in (tmp_path / "a.json", tmp_path / "folder"):
        database = tmp_path / f"{source.name}.db"
        await import_into(database, source)
        assert rows(database, "SELECT id, title FROM tasks ORDER BY id") == [
            (1, "Task 1"),
            (3, "Task 3"),
            (5, "Task 5"),
        ]
        async with open_workspace(database) as copy:
            assert (await copy.tasks.create(caller, title="New")).id == 6
    async with open_workspace(tmp_path / "used.db") as used:
        await used.tasks.create(caller, title="Mine")
    await import_into(tmp_path / "used.db", tmp_path / "a.json")
    found = rows(tmp_path / "used.db", "SELECT title FROM tasks ORDER BY id")
    assert found == [("Mine",), ("Task 1",), ("Task 3",), ("Task 5",)]


async def test_file_names_are_valid_on_every_operating_system(filled: Path, tmp_path: Path) -> None:
    await export_folder(filled, tmp_path / "folder")
    paths = [path for path in read_files(tmp_path / "folder") if path != ".gitattributes"]
    assert len({path.lower() for path in paths}) == len(paths)
    for path in paths:
        for part in path.split("/"):
            assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._~-]*[A-Za-z0-9_~-]", part), part
            assert not re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", part), part
            assert len(part) <= 120
    names = rows(filled, "SELECT name FROM prompts")
    assert {(name,) for name in NAMES} & set(names)


async def test_a_repeated_export_writes_only_changed_files(filled: Path, tmp_path: Path) -> None:
    database, folder = tmp_path / "b.db", tmp_path / "folder"
    await export_json(filled, tmp_path / "a.json")
    await import_into(database, tmp_path / "a.json")
    await export_folder(database, folder)
    (folder / "README.md").write_text("mine")
    (folder / "projects" / "default" / "prompts" / "added.md").write_text("Added by hand")
    before = read_files(folder)
    times = {path: (folder / path).stat().st_mtime_ns for path in before}
    assert await export_folder(database, folder) == 0
    assert {path: (folder / path).stat().st_mtime_ns for path in read_files(folder)} == times

    async with open_workspace(database) as workspace:
        caller = Caller(1, "somebody")
        (one, *_, gone) = await workspace.prompts.listing(caller, 0, 100)
        await workspace.prompts.update(caller, PromptAddress(name=one.name), PromptChange(content="Else"))
        await workspace.prompts.delete(caller, PromptAddress(name=gone.name))
    assert await export_folder(database, folder) == 2
    after = read_files(folder)
    assert len(before.keys() - after.keys()) == 1
    assert len([path for path in after if before.get(path) != after[path]]) == 1
    assert after["README.md"] == b"mine"
    assert after["projects/default/prompts/added.md"] == b"Added by hand"


async def test_only_the_files_of_deleted_entities_are_removed(tmp_path: Path) -> None:
    database, folder = tmp_path / "a.db", tmp_path / "folder"
    await fill_database(database, 20, 8, 10)
    await export_folder(database, folder)
    [(name,), *_] = rows(database, "SELECT name FROM resources WHERE project = 1 ORDER BY number")
    added = {
        f"projects/default/resources/{name}/notes.txt": b"mine",
        "projects/default/resources/mine/content.txt": b"mine",
        "tasks/.hidden.md": b"---\nid: 7\n---\n",
        "tasks/list.txt": b"id: 7\n",
    }
    for path, content in added.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    async with open_workspace(database) as workspace:
        await workspace.projects.delete("side", actor="somebody")
        await workspace.resources.delete(Caller(1, "somebody"), name)
    for target in (folder, tmp_path / "fresh"):
        await export_folder(database, target)
    assert read_files(folder) == {**read_files(tmp_path / "fresh"), **added}
    assert not (folder / "projects" / "side").exists()


async def test_a_file_added_by_hand_becomes_a_prompt(tmp_path: Path) -> None:
    await fill_database(tmp_path / "a.db", 20, 4, 10)
    folder = tmp_path / "folder"
    await export_folder(tmp_path / "a.db", folder)
    text = "---\ntitle: By hand\ntags: [Alpha]\n---\nBody\n"
    (folder / "projects" / "default" / "prompts" / "by-hand.md").write_text(text)
    (folder / "projects" / "fresh" / "prompts").mkdir(parents=True)
    (folder / "projects" / "fresh" / "prompts" / "plain.md").write_text("Only text\n")
    result = await import_into(tmp_path / "a.db", folder)
    assert (result.created["prompt"], result.created["project"], result.skipped["task"]) == (2, 1, 10)
    sql = "SELECT name, title, content, tags FROM prompts ORDER BY number DESC LIMIT 2"
    assert rows(tmp_path / "a.db", sql) == [
        ("plain", "plain", "Only text\n", "[]"),
        ("by-hand", "By hand", "Body\n", '["alpha"]'),
    ]
    await import_into(tmp_path / "b.db", folder)
    assert rows(tmp_path / "b.db", "SELECT count(*) FROM prompts WHERE name = 'by-hand'") == [(1,)]


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "core.autocrlf=true")
    subprocess.run(
        [GIT.require(), *identity, *arguments], cwd=folder, check=True, capture_output=True, timeout=30
    )


async def test_edits_of_different_entities_merge_in_git(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    await fill_database(tmp_path / "mine.db", 20, 4, 10)
    await export_json(tmp_path / "mine.db", tmp_path / "a.json")
    await import_into(tmp_path / "yours.db", tmp_path / "a.json")
    await export_folder(tmp_path / "mine.db", folder)
    git(folder, "init", "-b", "mine")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "both")
    git(folder, "branch", "yours")
    for name, number in (("mine", 0), ("yours", 1)):
        git(folder, "checkout", name)
        async with open_workspace(tmp_path / f"{name}.db") as workspace:
            caller = Caller(1, name)
            prompt = (await workspace.prompts.listing(caller, 0, 100))[number]
            address = PromptAddress(name=prompt.name)
            await workspace.prompts.update(caller, address, PromptChange(content=f"of {name}\r\n"))
            await workspace.prompts.create(caller, name=f"new-{name}", content=name)
        await export_folder(tmp_path / f"{name}.db", folder)
        git(folder, "add", ".")
        git(folder, "commit", "-m", name)
    git(folder, "merge", "mine")
    await import_into(tmp_path / "both.db", folder)
    contents = {row[0] for row in rows(tmp_path / "both.db", "SELECT content FROM prompts")}
    assert {"of mine\r\n", "of yours\r\n", "mine", "yours"} <= contents
