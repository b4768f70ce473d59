"""Databases of other programs can be imported, and are not changed."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from dittybag.domain.errors import Invalid, SourceFailed
from dittybag.domain.imports import RenamedEntity
from dittybag.exchange import source_detection
from dittybag.exchange.import_sources import FileSource
from tests.exchange.exchange_fixtures import import_into, rows
from tests.exchange.foreign_databases import MCPKG, PROMPT_STORE, TASK_MANAGER, create_database

ID = "550e8400-e29b-41d4-a716-446655440000"


def detect_and_open(path: Path) -> tuple[str, FileSource]:
    kind = source_detection.detect_format(str(path))
    return kind, source_detection.open_source(kind, str(path))


def file_contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def foreign_folder(tmp_path: Path) -> Path:
    """The data folder of the other program."""
    folder = tmp_path / "there"
    folder.mkdir()
    return folder


async def test_a_prompt_store_is_imported_with_tags_and_times(tmp_path: Path, foreign_folder: Path) -> None:
    create_database(
        foreign_folder / "prompts.db",
        PROMPT_STORE,
        prompts=[
            {
                "id": ID,
                "title": "Code Review Assistant",
                "content": "Review\r\n",
                "created_at": "2026-02-19 10:30:00",
            },
            {"id": "not-a-uuid", "title": "Tabs\tand\nlines ", "content": "Second"},
            {"id": "no-uuid", "title": "x" * 201, "content": "Third"},
        ],
        tags=[{"name": "coding"}, {"name": "review"}],
        prompt_tags=[{"prompt_id": ID, "tag_name": "coding"}, {"prompt_id": ID, "tag_name": "review"}],
    ).close()
    before = file_contents(foreign_folder)
    kind, source = detect_and_open(foreign_folder / "prompts.db")
    assert kind == "prompt-store"
    await import_into(tmp_path / "here.db", source)
    sql = "SELECT id, name, title, content, tags, created_at FROM prompts ORDER BY number LIMIT 1"
    first = (ID, "code-review-assistant", "Code Review Assistant", "Review\r\n", '["coding","review"]')
    assert rows(tmp_path / "here.db", sql) == [(*first, 1_771_497_000_000_000)]
    assert rows(tmp_path / "here.db", "SELECT name, title FROM prompts WHERE content = 'Second'") == [
        ("tabs-and-lines", "Tabs\tand\nlines ")
    ]
    assert source.renamed == [RenamedEntity("prompt", "x" * 201, "x" * 200)]
    assert file_contents(foreign_folder) == before
    assert (await import_into(tmp_path / "here.db", source)).skipped["prompt"] == 3


async def test_uncheckpointed_changes_of_a_running_program_are_imported(
    tmp_path: Path, foreign_folder: Path
) -> None:
    row = {"id": ID, "title": "Fresh", "content": "From the log"}
    connection = create_database(foreign_folder / "prompts.db", PROMPT_STORE, prompts=[row])
    assert (foreign_folder / "prompts.db-wal").stat().st_size > 0
    database_bytes = (foreign_folder / "prompts.db").read_bytes()
    await import_into(tmp_path / "here.db", detect_and_open(foreign_folder / "prompts.db")[1])
    assert rows(tmp_path / "here.db", "SELECT content FROM prompts") == [("From the log",)]
    assert (foreign_folder / "prompts.db").read_bytes() == database_bytes
    connection.close()


async def test_an_mcpkg_workspace_is_imported_with_projects_and_resources(
    tmp_path: Path, foreign_folder: Path
) -> None:
    png = b"\x89PNG\r\n\x1a\n\0"
    create_database(
        foreign_folder / "default.mcpkg",
        MCPKG,
        projects=[{"id": 1, "name": "default"}, {"id": 4, "name": "auth-module"}],
        prompts=[
            {"project_id": 4, "name": "code-review", "content": "Look", "description": "Security"},
            {"project_id": 4, "name": "odd name!", "content": "Odd"},
            {"project_id": 99, "name": "orphan", "content": "Nobody's"},
        ],
        resources=[
            {
                "project_id": 4,
                "name": "doc",
                "uri": "file:///a.md",
                "content": b"# A",
                "mime_type": "text/markdown",
            },
            {"project_id": 4, "name": "raw", "uri": "x:raw", "content": png, "mime_type": "image/png"},
            {
                "project_id": 4,
                "name": "b64",
                "uri": "x:b64",
                "content": b64encode(png),
                "mime_type": "image/png",
            },
            {
                "project_id": 1,
                "name": "bytes",
                "uri": "docs/my file.bin",
                "content": b"\xff\0",
                "mime_type": None,
            },
        ],
    ).close()
    before = file_contents(foreign_folder)
    kind, source = detect_and_open(foreign_folder / "default.mcpkg")
    assert kind == "mcpkg"
    result = await import_into(tmp_path / "here.db", source)
    assert result.created == {"project": 1, "prompt": 2, "resource": 4, "task": 0}
    found = rows(
        tmp_path / "here.db",
        """SELECT projects.name, resources.name, uri, mime_type, bytes FROM resources
           JOIN contents USING (sha256) JOIN projects ON projects.id = project ORDER BY number""",
    )
    assert found == [
        ("auth-module", "doc", "file:///a.md", "text/markdown", b"# A"),
        ("auth-module", "raw", "x:raw", "image/png", png),
        ("auth-module", "b64", "x:b64", "image/png", png),
        ("default", "bytes", "file:///docs/my%20file.bin", "application/octet-stream", b"\xff\0"),
    ]
    names = rows(tmp_path / "here.db", "SELECT name, title, description FROM prompts ORDER BY number")
    assert names == [("code-review", "code-review", "Security"), ("odd-name", "odd-name", None)]
    assert RenamedEntity("prompt", "odd name!", "odd-name") in source.renamed
    assert file_contents(foreign_folder) == before


def task_row(id: int, **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "user_id": "google-123",
        "title": f"Task {id}",
        "priority": 4,
        "energy": "deep",
        "time_estimate": "2hr",
        "completed": False,
        "created_at": "2025-12-25T12:00:00.123456+00:00",
        "updated_at": "2025-12-25T13:00:00+01:00",
        **more,
    }


async def test_a_task_manager_database_is_imported(tmp_path: Path, foreign_folder: Path) -> None:
    create_database(
        foreign_folder / "tasks.db",
        TASK_MANAGER,
        tasks=[
            task_row(3, notes="Notes", due_date="2026-01-31", project="Home"),
            task_row(5, completed=True, completed_at="2025-12-26T00:00:00"),
            task_row(6, completed=True, priority=9, energy="huge", due_date="next week", notes="Soon"),
        ],
    ).close()
    before = file_contents(foreign_folder)
    kind, source = detect_and_open(foreign_folder / "tasks.db")
    assert kind == "task-manager"
    await import_into(tmp_path / "here.db", source)
    sql = """SELECT user, title, project, priority, energy, notes, due_date, completed_at,
                    created_at, updated_at FROM tasks ORDER BY id"""
    created, updated = 1_766_664_000_123_456, 1_766_664_000_000_000
    assert rows(tmp_path / "here.db", sql) == [
        ("dev-user", "Task 3", "Home", 4, "deep", "Notes", "2026-01-31", None, created, updated),
        ("dev-user", "Task 5", None, 4, "deep", None, None, 1_766_707_200_000_000, created, updated),
        ("dev-user", "Task 6", None, 5, "medium", "Due: next week\n\nSoon", None, updated, created, updated),
    ]
    assert len(source.notes) == 2
    assert file_contents(foreign_folder) == before
    assert (await import_into(tmp_path / "here.db", source)).skipped["task"] == 3


async def test_tasks_of_several_users_keep_their_owners(tmp_path: Path, foreign_folder: Path) -> None:
    tasks = [task_row(1), task_row(2, user_id="dev-user"), task_row(3, user_id="b")]
    create_database(foreign_folder / "tasks.db", TASK_MANAGER, tasks=tasks).close()
    _, source = detect_and_open(foreign_folder / "tasks.db")
    await import_into(tmp_path / "here.db", source)
    users = rows(tmp_path / "here.db", "SELECT user FROM tasks ORDER BY id")
    assert users == [("google-123",), ("dev-user",), ("b",)]
    assert source.notes == ["Tasks of other users keep their owner. Owners (2): b, google-123"]


async def test_views_are_not_read(tmp_path: Path, foreign_folder: Path) -> None:
    endless = """
    CREATE TABLE prompt_tags (prompt_id, tag_name);
    CREATE VIEW prompts AS WITH RECURSIVE forever(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM forever)
    SELECT id, id AS title, 'x' AS content FROM forever;
    """
    create_database(foreign_folder / "prompts.db", endless).close()
    with pytest.raises(Invalid, match="a SQLite database of an unknown program"):
        detect_and_open(foreign_folder / "prompts.db")


async def test_unusual_values_are_reported_as_problems(tmp_path: Path, foreign_folder: Path) -> None:
    loose = """CREATE TABLE prompts (id, title, content, created_at);
               CREATE TABLE prompt_tags (prompt_id, tag_name);"""
    odd: list[dict[str, Any]] = [
        {"id": 1, "title": 2, "content": 3.5, "created_at": b"\xff"},
        {"id": None, "title": "", "content": None, "created_at": "0000-99-99"},
    ]
    create_database(foreign_folder / "prompts.db", loose, prompts=odd).close()
    with pytest.raises(Invalid, match="a name or a title is required"):
        await import_into(tmp_path / "here.db", detect_and_open(foreign_folder / "prompts.db")[1])
    assert rows(tmp_path / "here.db", "SELECT * FROM prompts") == []


async def test_oversize_values_and_damage_are_reported(tmp_path: Path, foreign_folder: Path) -> None:
    loose = "CREATE TABLE prompts (id, title, content); CREATE TABLE prompt_tags (prompt_id, tag_name);"
    connection = create_database(foreign_folder / "prompts.db", loose)
    connection.execute("INSERT INTO prompts VALUES (1, 'big', zeroblob(20000000))")
    connection.close()
    with pytest.raises(SourceFailed, match="it contains a value larger than 16 MiB"):
        await import_into(tmp_path / "here.db", detect_and_open(foreign_folder / "prompts.db")[1])
    content = bytearray((foreign_folder / "prompts.db").read_bytes())
    content[100:4096] = b"\xaa" * 3996
    (foreign_folder / "prompts.db").write_bytes(content)
    with pytest.raises(SourceFailed, match=r"it is damaged|malformed|not a"):
        detect_and_open(foreign_folder / "prompts.db")
