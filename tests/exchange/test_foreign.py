"""What other programs keep can be taken in, and stays as it is where it was."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from dittybag.domain.errors import Invalid, SourceFailed
from dittybag.exchange import source_detection
from dittybag.exchange.import_sources import Source
from tests.exchange.foreign import MCPKG, PROMPT_STORE, TASK_MANAGER, database
from tests.exchange.workspaces import rows, take

ID = "550e8400-e29b-41d4-a716-446655440000"


def recognised(path: Path) -> tuple[str, Source]:
    kind = source_detection.recognised(str(path))
    return kind, source_detection.source(kind, str(path))


def beside(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Where the other program keeps its files."""
    folder = tmp_path / "there"
    folder.mkdir()
    return folder


async def test_a_prompt_store_with_its_tags_and_times(tmp_path: Path, there: Path) -> None:
    database(
        there / "prompts.db",
        PROMPT_STORE,
        prompts=[
            {
                "id": ID,
                "title": "Code Review Assistant",
                "content": "Review\r\n",
                "created_at": "2026-02-19 10:30:00",
            },
            {"id": "not-a-uuid", "title": "Tabs\tand " + "x" * 150, "content": "Second"},
        ],
        tags=[{"name": "coding"}, {"name": "review"}],
        prompt_tags=[{"prompt_id": ID, "tag_name": "coding"}, {"prompt_id": ID, "tag_name": "review"}],
    ).close()
    before = beside(there)
    kind, source = recognised(there / "prompts.db")
    assert kind == "prompt-store"
    await take(tmp_path / "here.db", source)
    sql = "SELECT id, name, title, content, tags, created_at FROM prompts ORDER BY number LIMIT 1"
    first = (ID, "code-review-assistant", "Code Review Assistant", "Review\r\n", '["coding","review"]')
    assert rows(tmp_path / "here.db", sql) == [(*first, 1_771_497_000_000_000)]
    assert source.fitted == [("prompt", "Tabs\tand " + "x" * 150, "Tabs and " + "x" * 150)]
    assert beside(there) == before
    assert (await take(tmp_path / "here.db", source)).skipped["prompt"] == 2


async def test_what_a_running_program_has_not_yet_put_into_its_file_is_read_too(
    tmp_path: Path, there: Path
) -> None:
    row = {"id": ID, "title": "Fresh", "content": "From the log"}
    connection = database(there / "prompts.db", PROMPT_STORE, prompts=[row])
    assert (there / "prompts.db-wal").stat().st_size > 0
    database_bytes = (there / "prompts.db").read_bytes()
    await take(tmp_path / "here.db", recognised(there / "prompts.db")[1])
    assert rows(tmp_path / "here.db", "SELECT content FROM prompts") == [("From the log",)]
    assert (there / "prompts.db").read_bytes() == database_bytes
    connection.close()


async def test_an_mcpkg_workspace_with_its_projects_and_documents(tmp_path: Path, there: Path) -> None:
    png = b"\x89PNG\r\n\x1a\n\0"
    database(
        there / "default.mcpkg",
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
    before = beside(there)
    kind, source = recognised(there / "default.mcpkg")
    assert kind == "mcpkg"
    intake = await take(tmp_path / "here.db", source)
    assert intake.created == {"project": 1, "prompt": 2, "resource": 4, "task": 0}
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
    assert ("prompt", "odd name!", "odd-name") in source.fitted
    assert beside(there) == before


def a_task(id: int, **more: Any) -> dict[str, Any]:
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


async def test_a_task_manager_with_its_tasks(tmp_path: Path, there: Path) -> None:
    database(
        there / "tasks.db",
        TASK_MANAGER,
        tasks=[
            a_task(3, notes="Notes", due_date="2026-01-31", project="Home"),
            a_task(5, completed=True, completed_at="2025-12-26T00:00:00"),
            a_task(6, completed=True, priority=9, energy="huge", due_date="next week", notes="Soon"),
        ],
    ).close()
    before = beside(there)
    kind, source = recognised(there / "tasks.db")
    assert kind == "task-manager"
    await take(tmp_path / "here.db", source)
    sql = """SELECT user, title, project, priority, energy, notes, due_date, completed_at,
                    created_at, updated_at FROM tasks ORDER BY id"""
    created, updated = 1_766_664_000_123_456, 1_766_664_000_000_000
    assert rows(tmp_path / "here.db", sql) == [
        ("dev-user", "Task 3", "Home", 4, "deep", "Notes", "2026-01-31", None, created, updated),
        ("dev-user", "Task 5", None, 4, "deep", None, None, 1_766_707_200_000_000, created, updated),
        ("dev-user", "Task 6", None, 5, "medium", "Due: next week\n\nSoon", None, updated, created, updated),
    ]
    assert len(source.notes) == 2
    assert beside(there) == before
    assert (await take(tmp_path / "here.db", source)).skipped["task"] == 3


async def test_tasks_of_several_users_stay_apart(tmp_path: Path, there: Path) -> None:
    tasks = [a_task(1), a_task(2, user_id="dev-user"), a_task(3, user_id="b")]
    database(there / "tasks.db", TASK_MANAGER, tasks=tasks).close()
    _, source = recognised(there / "tasks.db")
    await take(tmp_path / "here.db", source)
    users = rows(tmp_path / "here.db", "SELECT user FROM tasks ORDER BY id")
    assert users == [("google-123",), ("dev-user",), ("b",)]
    assert source.notes == ["The tasks of 2 other users stay theirs: b, google-123"]


async def test_views_are_not_read(tmp_path: Path, there: Path) -> None:
    endless = """
    CREATE TABLE prompt_tags (prompt_id, tag_name);
    CREATE VIEW prompts AS WITH RECURSIVE forever(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM forever)
    SELECT id, id AS title, 'x' AS content FROM forever;
    """
    database(there / "prompts.db", endless).close()
    with pytest.raises(Invalid, match="a program that is not known here"):
        recognised(there / "prompts.db")


async def test_odd_values_are_problems_and_no_crashes(tmp_path: Path, there: Path) -> None:
    loose = """CREATE TABLE prompts (id, title, content, created_at);
               CREATE TABLE prompt_tags (prompt_id, tag_name);"""
    odd: list[dict[str, Any]] = [
        {"id": 1, "title": 2, "content": 3.5, "created_at": b"\xff"},
        {"id": None, "title": "", "content": None, "created_at": "0000-99-99"},
    ]
    database(there / "prompts.db", loose, prompts=odd).close()
    with pytest.raises(Invalid, match="there must be a name or a title"):
        await take(tmp_path / "here.db", recognised(there / "prompts.db")[1])
    assert rows(tmp_path / "here.db", "SELECT * FROM prompts") == []


async def test_huge_values_and_damage_are_told(tmp_path: Path, there: Path) -> None:
    loose = "CREATE TABLE prompts (id, title, content); CREATE TABLE prompt_tags (prompt_id, tag_name);"
    connection = database(there / "prompts.db", loose)
    connection.execute("INSERT INTO prompts VALUES (1, 'big', zeroblob(20000000))")
    connection.close()
    with pytest.raises(SourceFailed, match="a value in it of more than 16 MiB"):
        await take(tmp_path / "here.db", recognised(there / "prompts.db")[1])
    content = bytearray((there / "prompts.db").read_bytes())
    content[100:4096] = b"\xaa" * 3996
    (there / "prompts.db").write_bytes(content)
    with pytest.raises(SourceFailed, match=r"it is damaged|malformed|not a"):
        recognised(there / "prompts.db")
