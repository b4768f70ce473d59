"""Databases of other programs can be imported, and are not changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dittybag.domain.errors import Invalid, SourceFailed
from dittybag.domain.imports import RenamedEntity
from dittybag.exchange import source_detection
from dittybag.exchange.import_sources import FileSource
from tests.exchange.exchange_fixtures import import_into, read_files, rows
from tests.exchange.prompt_store_databases import PROMPT_STORE, create_database

ID = "550e8400-e29b-41d4-a716-446655440000"


def detect_and_open(path: Path) -> tuple[str, FileSource]:
    kind = source_detection.detect_format(str(path))
    return kind, source_detection.open_source(kind, str(path))


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
    before = read_files(foreign_folder)
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
    assert read_files(foreign_folder) == before
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
