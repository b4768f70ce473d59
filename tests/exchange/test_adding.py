"""Importing into a workspace that has something in it: one batch of ordinary writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from dittybag.domain.errors import ProjectNotFound, SeveralConflicts
from dittybag.domain.prompts import Prompt
from dittybag.exchange.import_sources import Found, Source
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite.store import SqliteStore
from tests.exchange.filling import fill
from tests.exchange.workspaces import ACTOR, everything, rows, take, to_folder, to_json
from tests.torture.books import Books

PROMPTS = "SELECT name, title, content FROM prompts ORDER BY number"


def write(path: Path, **sections: Any) -> Path:
    path.write_bytes(msgspec.json.encode({"format": "dittybag", "version": 1, **sections}))
    return path


def prompt(name: str, content: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "title": name.upper(), "content": content, **more}


def a_resource(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "uri": f"x:{name}", "mime_type": "text/plain", "text": text, **more}


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    """A workspace with two prompts and a resource."""
    path = tmp_path / "here.db"
    start = write(
        tmp_path / "start.json",
        prompts=[prompt("one", "first"), prompt("two", "second")],
        resources=[a_resource("doc", "old")],
        tasks=[{"title": "Milk", "created_at": "2026-01-01T00:00:00Z"}],
    )
    await take(path, start)
    return path


async def test_what_is_there_already_is_skipped(database: Path, tmp_path: Path) -> None:
    before = everything(database)
    for history in (False, True):
        await to_json(database, tmp_path / "a.json", history=history)
        intake = await take(database, tmp_path / "a.json")
        assert intake.skipped == {"project": 0, "prompt": 2, "resource": 1, "task": 1}
        assert not any(intake.created.values())
    await to_folder(database, tmp_path / "folder")
    assert not any((await take(database, tmp_path / "folder")).created.values())
    assert everything(database) == before


async def test_conflicts_are_all_named_and_nothing_is_changed(database: Path, tmp_path: Path) -> None:
    source = write(
        tmp_path / "more.json",
        prompts=[prompt("new", "n"), prompt("one", "other"), prompt("three", "x", title="TWO")],
        resources=[a_resource("doc", "new"), a_resource("paper", "p", uri="x:doc")],
    )
    before = everything(database)
    with pytest.raises(SeveralConflicts) as caught:
        await take(database, source)
    assert [type(conflict).__name__ for conflict in caught.value.conflicts] == [
        "NameTaken",
        "TitleTaken",
        "NameTaken",
        "UriTaken",
    ]
    tried = await take(database, source, dry_run=True)
    assert len(tried.conflicts) == 4
    assert tried.created["prompt"] == 1
    assert everything(database) == before


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
async def test_conflicts_are_settled_as_one_wishes(
    database: Path, tmp_path: Path, choice: str, prompts: list[Any], resources: list[Any]
) -> None:
    source = write(
        tmp_path / "more.json",
        prompts=[prompt("new", "n"), prompt("one", "other"), prompt("three", "x", title="TWO")],
        resources=[a_resource("doc", "newer")],
    )
    before = everything(database)
    tried = await take(database, source, on_conflict=choice, dry_run=True)
    assert everything(database) == before
    done = await take(database, source, on_conflict=choice)
    assert (done.created, done.replaced, done.skipped) == (tried.created, tried.replaced, tried.skipped)
    assert list(map(str, done.conflicts)) == list(map(str, tried.conflicts))
    assert rows(database, PROMPTS) == prompts
    assert rows(database, "SELECT name, uri, size FROM resources ORDER BY number") == resources
    books = Books(database)
    books.check()
    books.close()


async def test_one_undo_takes_an_import_back(database: Path, tmp_path: Path) -> None:
    await fill(tmp_path / "other.db", 60, 10, 30)
    await to_json(tmp_path / "other.db", tmp_path / "other.json")
    before = everything(database)[:4]
    await take(database, tmp_path / "other.json", on_conflict="replace")
    batches = rows(database, f"SELECT DISTINCT coalesce(batch, seq) FROM changes WHERE actor = '{ACTOR}'")
    assert len(batches) == 2
    workspace = Workspace(SqliteStore(str(database)))
    newest = (await workspace.history.page(Caller(1, "me"), limit=1))[0]
    await workspace.history.undo(Caller(1, "me"), newest.seq)
    await workspace.store.close()
    assert everything(database)[:4] == before
    books = Books(database)
    books.check()
    books.close()


async def test_an_import_into_an_empty_workspace_can_be_undone(tmp_path: Path) -> None:
    await fill(tmp_path / "a.db", 40, 10, 20)
    await to_json(tmp_path / "a.db", tmp_path / "a.json", history=False)
    await take(tmp_path / "b.db", tmp_path / "a.json")
    workspace = Workspace(SqliteStore(str(tmp_path / "b.db")))
    newest = (await workspace.history.page(Caller(1, "me"), limit=1))[0]
    await workspace.history.undo(Caller(1, "me"), newest.seq)
    await workspace.store.close()
    assert rows(tmp_path / "b.db", "SELECT name FROM projects") == [("default",)]
    for table in ("prompts", "resources", "tasks"):
        assert rows(tmp_path / "b.db", f"SELECT * FROM {table}") == []


async def test_everything_can_be_put_into_one_project(database: Path, tmp_path: Path) -> None:
    await to_json(database, tmp_path / "a.json")
    with pytest.raises(ProjectNotFound):
        await take(database, tmp_path / "a.json", project="side")
    workspace = Workspace(SqliteStore(str(database)))
    side = await workspace.projects.create("side", actor="me")
    await workspace.store.close()
    intake = await take(database, tmp_path / "a.json", project="side")
    assert (intake.created["prompt"], intake.created["resource"], intake.skipped["task"]) == (2, 1, 1)
    there = rows(database, f"SELECT id, name FROM prompts WHERE project = {side.id} ORDER BY number")
    here = rows(database, "SELECT id, name FROM prompts WHERE project = 1 ORDER BY number")
    assert [name for _, name in there] == [name for _, name in here]
    assert not {key for key, _ in there} & {key for key, _ in here}


async def test_tasks_get_new_numbers_and_equal_ones_are_counted(database: Path, tmp_path: Path) -> None:
    milk = {"id": 1, "title": "Milk", "created_at": "2026-01-01T00:00:00Z"}
    source = write(
        tmp_path / "tasks.json", tasks=[milk, {**milk, "id": 2}, {**milk, "id": 3, "notes": "Oat"}]
    )
    intake = await take(database, source)
    assert (intake.created["task"], intake.skipped["task"]) == (2, 1)
    assert rows(database, "SELECT id, notes FROM tasks ORDER BY id") == [(1, None), (2, None), (3, "Oat")]
    again = await take(database, source)
    assert (again.created["task"], again.skipped["task"]) == (0, 3)


class _Titled(Source):
    """Prompts that have only titles, as other programs have them."""

    def __init__(self, *titles: str) -> None:
        super().__init__()
        self._titles = titles

    def prompts(self) -> list[Found[Prompt]]:
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


async def test_names_are_made_of_titles_where_there_are_none(database: Path) -> None:
    await take(database, _Titled("One?", "Ähnlich", "One!"))
    assert rows(database, PROMPTS)[2:] == [
        ("one-2", "One?", "One?"),
        ("hnlich", "Ähnlich", "Ähnlich"),
        ("one-3", "One!", "One!"),
    ]
    assert (await take(database, _Titled("One?", "Ähnlich", "One!"))).skipped["prompt"] == 3


async def test_a_folder_is_added_in_the_order_of_creation(database: Path, tmp_path: Path) -> None:
    names = ["zebra", "apple", "mango"]
    await take(tmp_path / "other.db", write(tmp_path / "other.json", prompts=[prompt(n, n) for n in names]))
    await to_folder(tmp_path / "other.db", tmp_path / "folder")
    await take(database, tmp_path / "folder")
    assert [name for name, _, _ in rows(database, PROMPTS)] == ["one", "two", *names]
