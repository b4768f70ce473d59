"""Imports with errors change nothing and report each problem with its location."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dittybag.domain.errors import Invalid, SourceFailed
from tests.exchange.exchange_data import fill_database
from tests.exchange.exchange_fixtures import (
    check_consistency,
    dump_tables,
    export_folder,
    export_json,
    import_into,
    rows,
)
from tests.stdio_server_process import ROOT


async def edited_export(tmp_path: Path, edit: Callable[[dict[str, Any]], None]) -> Path:
    """Fill `a.db`, export it, and return the file after an edit of its decoded JSON."""
    await fill_database(tmp_path / "a.db", 30, 10, 20)
    export = msgspec.json.decode(await export_json(tmp_path / "a.db", tmp_path / "edited.json"))
    edit(export)
    (tmp_path / "edited.json").write_bytes(msgspec.json.encode(export))
    return tmp_path / "edited.json"


def set_value(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return an edit that sets the value at a path such as `prompts.3.title`."""

    def edit(export: Any) -> None:
        *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        for part in parents:
            export = export[part]
        export[last] = value

    return edit


def set_tasks(*tasks: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    """Return an edit that replaces the tasks. Each gets a title."""
    return lambda found: found.update(
        tasks=[{"id": number, "title": "x", **task} for number, task in enumerate(tasks, 1)]
    )


COMMENT = {"at": "2026-01-01T00:00:00Z", "author": "a", "text": "b"}
BAD_VALUES = {
    "long title": (set_value("prompts.3.title", "x" * 201), "prompts 4: Title must be 1-200 characters"),
    "unknown field": (
        set_value("prompts.3.colour", "x"),
        "prompts 4: Object contains unknown field `colour`",
    ),
    "wrong type": (set_value("tasks.0.priority", "high"), "tasks 1: Expected `int`, got `str`"),
    "prompt of an unknown project": (
        set_value("prompts.0.project", "nowhere"),
        "project 'nowhere' is not listed in projects",
    ),
    "bad base64": (set_value("resources.1", {"name": "x", "base64": "!"}), "base64 must be valid base64"),
    "bad due date": (set_value("tasks.0.due_date", "soon"), "due_date must be an ISO 8601 date"),
    "time of creation": (
        set_value("prompts.0.created_at", "yesterday"),
        "created_at must be a time like",
    ),
    "bad name": (set_value("prompts.0.name", "a b"), "contains invalid characters"),
    "huge id": (set_value("tasks.0.id", 2**60), "id is out of range"),
    "energy": (set_value("tasks.0.energy", "none"), "Energy must be one of"),
    "cycle": (
        set_tasks({"blocked_by": [2]}, {"blocked_by": [3]}, {"blocked_by": [1]}),
        "tasks: these tasks would wait for each other: 1 → 2 → 3 → 1",
    ),
    "cycle through a part": (
        set_tasks({}, {"parent": 1, "blocked_by": [1]}),
        "tasks: these tasks would wait for each other: 2 → 1 → 2",
    ),
    "long cycle": (
        set_tasks(*({"blocked_by": [number % 50 + 1]} for number in range(1, 51))),
        "1 → 2 → 3 → 4 → 5 → 6 → 7 → 8 → 9 → 10 → ... → 1",
    ),
    "itself": (set_tasks({"blocked_by": [1]}), "tasks 1: a task cannot be blocked by itself"),
    "negative id": (set_tasks({"parent": -1}), "blocked_by and parent must be ids of tasks"),
    "edge to a huge id": (set_tasks({"blocked_by": [2**80]}), "blocked_by and parent must be ids of tasks"),
    "many blockers": (
        set_tasks({"blocked_by": list(range(2, 110))}),
        "A task can be blocked by at most 100 others",
    ),
    "unknown status": (set_tasks({"status": "lost"}), "tasks 1: Invalid enum value 'lost'"),
    "done without a time": (set_tasks({"status": "done"}), "status must be done if completed_at is set"),
    "dropped with a time": (
        set_tasks({"status": "dropped", "completed_at": "2026-01-01T00:00:00Z"}),
        "status must be done if completed_at is set",
    ),
    "shared with nobody": (set_tasks({"shared": True}), "a shared task must name its project"),
    "shared with an unknown project": (
        set_tasks({"shared": True, "project": "nowhere"}),
        "project 'nowhere' is not listed in projects",
    ),
    "a number for the project": (set_tasks({"project_id": 1}), "unknown field `project_id`"),
    "long comment": (
        set_tasks({"comments": [{**COMMENT, "text": "x" * 10_001}]}),
        "A comment must be between 1 and 10000 characters",
    ),
    "many comments": (set_tasks({"comments": [COMMENT] * 201}), "A task can have at most 200 comments"),
    "comment with NUL": (set_tasks({"comments": [{**COMMENT, "text": "\0"}]}), "Comment "),
    "long author": (
        set_tasks({"comments": [{**COMMENT, "author": "x" * 10_001}]}),
        "the author of a comment must be at most 10000 characters",
    ),
    "bad time": (set_tasks({"comments": [{**COMMENT, "at": "soon"}]}), "at must be a time like"),
    "comment without a time": (
        set_tasks({"comments": [{"author": "a", "text": "b"}]}),
        "missing required field `at`",
    ),
    "many labels": (set_tasks({"labels": ["x"] * 21}), "At most 20 labels are allowed"),
    "long link": (set_tasks({"links": ["x" * 2001]}), "must be between 1 and 2000 characters"),
    "long assignee": (set_tasks({"assignee": "x" * 201}), "Assignee must be at most 200 characters"),
}


@pytest.mark.parametrize("name", BAD_VALUES)
async def test_a_bad_value_is_reported_and_nothing_is_changed(tmp_path: Path, name: str) -> None:
    edit, problem = BAD_VALUES[name]
    bad = await edited_export(tmp_path, edit)
    before = dump_tables(tmp_path / "a.db")
    for database in ("a.db", "b.db"):
        with pytest.raises(Invalid) as caught:
            await import_into(tmp_path / database, bad, on_conflict="replace")
        assert problem in str(caught.value)
    assert dump_tables(tmp_path / "a.db") == before
    assert len(rows(tmp_path / "b.db", "SELECT * FROM changes")) == 1


async def test_an_edge_to_one_of_two_tasks_with_the_same_id_is_refused(tmp_path: Path) -> None:
    bad = await edited_export(tmp_path, set_tasks({"blocked_by": [2]}, {}, {"id": 2, "title": "y"}))
    with pytest.raises(Invalid, match="tasks 1: blocked_by or parent names task 2, but several tasks have"):
        await import_into(tmp_path / "a.db", bad)


async def test_edges_to_tasks_that_are_not_in_the_file_are_removed(tmp_path: Path) -> None:
    partial = await edited_export(tmp_path, set_tasks({"blocked_by": [2, 8, 9], "parent": 7}, {}))
    for database in ("a.db", "b.db"):
        result = await import_into(tmp_path / database, partial, on_conflict="skip")
        note = "Removed 3 references in blocked_by and parent to tasks that are not in the source"
        assert result.notes == [note]
    assert rows(tmp_path / "b.db", "SELECT id, blocked_by, parent FROM tasks ORDER BY id") == [
        (1, "[2]", None),
        (2, "[]", None),
    ]


async def test_tasks_without_a_status_are_imported(tmp_path: Path) -> None:
    tasks = set_tasks({"completed_at": "2026-01-01T00:00:00Z"}, {"project": "default"})
    await import_into(tmp_path / "b.db", await edited_export(tmp_path, tasks))
    assert rows(tmp_path / "b.db", "SELECT id, status, project, project_id FROM tasks ORDER BY id") == [
        (1, "done", None, None),
        (2, "todo", "default", None),
    ]


async def test_up_to_twenty_problems_are_reported(tmp_path: Path) -> None:
    tasks = set_tasks(*({"priority": 9, "energy": "none"} for _ in range(25)))
    with pytest.raises(Invalid) as caught:
        await import_into(tmp_path / "b.db", await edited_export(tmp_path, tasks))
    assert len(caught.value.problems) == 21
    assert str(caught.value).endswith("and 30 more")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"format":"dittybag"}',
        b'{"format":"dittybag","version":2}',
        b'{"format":"other","version":1}',
        b'{"format":"dittybag","version":1,"prompts":{}}',
        b'{"format":"dittybag","version":1,"more":1}',
        b'{"format":"dittybag","version":NaN}',
        b'{"format":"\xff","version":1}',
        b'{"format":"dittybag","version":1,"prompts":[{"title":"\\ud800"}]}',
        b'{"format":"dittybag","version":1,"prompts":' + b"[" * 100_000,
        b'{"format":"dittybag","version":1,"prompts":[' + b'{"a":' * 100_000,
    ],
)
async def test_a_file_that_is_not_a_valid_export_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(SourceFailed):
        await import_into(tmp_path / "b.db", tmp_path / "bad.json")


@pytest.mark.parametrize("item", [b"[" * 500 + b"]" * 500, b"null", b'{"title":"\xff"}'])
async def test_an_invalid_item_is_reported_with_its_location(tmp_path: Path, item: bytes) -> None:
    whole = b'{"format":"dittybag","version":1,"prompts":[' + item + b"]}"
    (tmp_path / "bad.json").write_bytes(whole)
    with pytest.raises(Invalid, match="prompts 1: "):
        await import_into(tmp_path / "b.db", tmp_path / "bad.json")


# Folders


async def exported_folder(tmp_path: Path) -> Path:
    await fill_database(tmp_path / "a.db", 30, 10, 20)
    await export_folder(tmp_path / "a.db", tmp_path / "folder")
    return tmp_path / "folder"


BAD_FILES: dict[str, tuple[str | bytes, str]] = {
    "tasks/000099.md": ("---\nid: 99\ntitle: x\n", "the front matter has no end"),
    "tasks/000098.md": (
        "---\n<<<<<<< HEAD\ntitle: a\n=======\ntitle: b\n>>>>>>> x\n---\n",
        "Git conflict markers",
    ),
    "tasks/000097.md": ("---\ntitle: a\ntitle: b\n---\n", "title occurs more than once"),
    "tasks/000096.md": ("---\ntitle: [a\n---\n", "not valid YAML"),
    "tasks/000095.md": (
        "---\ntitle: {a: &x [b], c: *x}\n---\n",
        "anchors and aliases (& and *) are not supported",
    ),
    "tasks/000085.md": ("---\ntitle: {a: b}\n---\n", "Expected `str`, got `object`"),
    "tasks/000094.md": ("---\ncolour: red\n---\n", "unknown field `colour`"),
    "tasks/000093.md": (b"---\ntitle: a\n---\n\xff", "it is not UTF-8"),
    "tasks/000092.md": ("---\ntitle: a\npriority: 9\n---\n", "Priority must be between 1 and 5"),
    "tasks/000087.md": ("---\ntitle: a\nlinks:\n" + "- a\n" * 2_000_000 + "---\n", "more than 20,000 values"),
    "tasks/000086.md": (
        "---\ntitle: a\nlinks: " + "[" * 2_000_000 + "\n---\n",
        "nested more than 20 levels deep",
    ),
    "tasks/000083.md": (
        "---\ntitle: a\nlinks:\n" + "- " * 200_000 + "a\n---\n",
        "nested more than 20 levels deep",
    ),
    "tasks/000082.md": ("---\n" + "? " * 200_000 + "a\n---\n", "nested more than 20 levels deep"),
    "tasks/000081.md": ("---\ntitle: '" + "x" * 2**25 + "'\n---\n", "are larger than 32768 KiB"),
    "projects/default/prompts/empty.md": ("---\ntitle: x\n---\n", "Content must not be empty"),
    "projects/default/prompts/a b.md": ("text", "contains invalid characters"),
    "projects/default/prompts/big.md": ("x" * 1_600_000, "it is larger than"),
    "projects/default/resources/bare/resource.yaml": (
        "uri: 'x:y'\n",
        "must contain exactly one content.* file, not 0",
    ),
    "projects/default/resources/lost/content.txt": ("text", "no such file"),
}


@pytest.mark.parametrize("path", BAD_FILES)
async def test_a_bad_file_is_reported_and_nothing_is_changed(tmp_path: Path, path: str) -> None:
    content, problem = BAD_FILES[path]
    folder = await exported_folder(tmp_path)
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = dump_tables(tmp_path / "a.db")
    for database in (tmp_path / "a.db", tmp_path / "b.db"):
        with pytest.raises(Invalid) as caught:
            await import_into(database, folder)
        assert problem in str(caught.value)
        assert path.rpartition("/")[0] in str(caught.value)
    assert dump_tables(tmp_path / "a.db") == before
    assert len(rows(tmp_path / "b.db", "SELECT * FROM changes")) == 1


async def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    folder = await exported_folder(tmp_path)
    secret = tmp_path / "secret"
    (secret / "prompts").mkdir(parents=True)
    (secret / "prompts" / "secret.md").write_text("secret")
    (folder / "projects" / "linked").symlink_to(secret)
    (folder / "projects" / "default" / "prompts" / "secret.md").symlink_to(secret / "prompts" / "secret.md")
    os.mkfifo(folder / "tasks" / "000999.md")
    result = await import_into(tmp_path / "b.db", folder)
    assert result.created["prompt"] > 20
    assert rows(tmp_path / "b.db", "SELECT * FROM prompts WHERE content = 'secret'") == []
    assert rows(tmp_path / "b.db", "SELECT * FROM projects WHERE name = 'linked'") == []


async def test_an_export_does_not_write_through_links(tmp_path: Path) -> None:
    folder = await exported_folder(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "tasks").rename(tmp_path / "moved")
    (folder / "tasks").symlink_to(outside)
    with pytest.raises(OSError, match=r"[Ll]ink|[Dd]irectory"):
        await export_folder(tmp_path / "a.db", folder)
    assert list(outside.iterdir()) == []


# Crashes


def start_import(home: Path, source: Path, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "dittybag", "import", str(source)],
        cwd=ROOT,
        env={**os.environ, "DITTYBAG_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def file_size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _import_beyond_the_disk_space(home: Path, file: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))

    process = start_import(home, file, preexec_fn=limit)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 5
    assert b"nothing was changed" in stderr
    assert b"Traceback" not in stderr
    assert len(rows(home / "default.db", "SELECT * FROM changes")) == 1


def _is_killed_before_its_commit(database: Path, file: Path, changes: int) -> bool:
    """Kill an import of this many changes while it writes, and check that it wrote all or nothing."""
    log = database.with_name("default.db-wal")
    process = start_import(database.parent, file)
    deadline = time.monotonic() + 30
    # The import exceeds the cache and writes to the WAL before it is finished.
    while file_size(log) < 1_000_000 and process.poll() is None:
        assert time.monotonic() < deadline
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.002)
    process.kill()
    process.communicate()
    check_consistency(database)
    # One change creates the project `default`.
    written = len(rows(database, "SELECT * FROM changes")) - 1
    assert written == changes or (written == 0 and process.returncode == -signal.SIGKILL)
    return written == 0


async def test_a_broken_off_import_changes_nothing(tmp_path: Path) -> None:
    await fill_database(tmp_path / "a.db", 3_000, 200, 1_000)
    exported = await export_json(tmp_path / "a.db", tmp_path / "a.json")
    _import_beyond_the_disk_space(tmp_path / "small", tmp_path / "a.json")
    whole = tmp_path / "whole" / "default.db"
    start_import(whole.parent, tmp_path / "a.json").communicate(timeout=60)
    changes = len(rows(whole, "SELECT * FROM changes")) - 1
    # A kill that comes too late for one import comes in time for another.
    databases = (tmp_path / str(number) / "default.db" for number in range(20))
    database = next(
        database
        for database in databases
        if _is_killed_before_its_commit(database, tmp_path / "a.json", changes)
    )
    await import_into(database, tmp_path / "a.json")
    assert await export_json(database, tmp_path / "b.json") == exported
