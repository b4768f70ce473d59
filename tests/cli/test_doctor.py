"""`dittybag doctor`: its findings and fixes, also for damaged databases."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from dittybag.assembly.doctor_checks import run_checks
from dittybag.config import settings
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from tests.cli.cli_runner import data, dittybag
from tests.cli.pseudo_terminal import run_in_terminal
from tests.exchange.exchange_data import fill_database
from tests.repetitions import SEED, repetitions
from tests.stdio_server_process import ROOT, StdioServerProcess
from tests.storage.sqlite.scripted_process import drop_privileges

CORRUPTIONS = repetitions(120, 3000)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder whose database has entities of every kind."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    asyncio.run(fill_database(home / "default.db", 24, 8, 0))
    dittybag(home, "task", "add", "first", "--label", "ci")
    dittybag(home, "task", "add", "second", "--label", "ci", "--blocked-by", "1")
    return home


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def sql(path: Path, *statements: str) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        for statement in statements:
            connection.execute(statement)


def run_doctor(home: Path, *options: str, status: int = 0) -> Any:
    """Run doctor and return its JSON output; every problem must have a fix."""
    found = data(dittybag(home, "doctor", "--json", *options, status=status))
    for finding in found["findings"]:
        assert list(finding) == ["level", "topic", "message", "fix"]
        assert finding["fix"] or finding["level"] == "ok", finding
    assert found["errors"] == len(topics_at(found, "error"))
    return found


def topics_at(found: Any, level: str) -> list[str]:
    return [finding["topic"] for finding in found["findings"] if finding["level"] == level]


def find_topic(found: Any, topic: str) -> Any:
    return next(item for item in found["findings"] if item["topic"] == topic)


def test_a_sound_database_has_no_problems_and_is_left_unchanged(home: Path) -> None:
    before = read_files(home)
    found = run_doctor(home)
    assert (found["errors"], found["warnings"], found["fixed"]) == (0, 0, [])
    assert found["database"] == str(home / "default.db")
    checked = {"versions", "database", "integrity", "references", "contents", "search index", "libraries"}
    assert checked <= set(topics_at(found, "ok"))
    assert f"Schema {NEWEST_SCHEMA}, the newest" in find_topic(found, "schema")["message"]
    assert apsw.sqlite_lib_version() in find_topic(found, "versions")["message"]
    assert read_files(home) == before


def test_a_missing_database_is_not_created(tmp_path: Path) -> None:
    found = run_doctor(tmp_path / "home")
    assert find_topic(found, "database")["level"] == "note"
    assert list(tmp_path.iterdir()) == []


def damage_index(path: Path) -> None:
    """Overwrite a page of the trigrams with text that FTS5 cannot read."""
    sql(path, "UPDATE prompt_index_data SET block = x'00ff00ff00ff' WHERE id > 10")


def test_a_damaged_search_index_is_reported_and_repaired_only_with_fix(home: Path) -> None:
    damage_index(home / "default.db")
    before = read_files(home)
    found = run_doctor(home, status=1)
    assert set(topics_at(found, "error")) == {"search index"}
    assert find_topic(found, "search index")["fix"] == "dittybag doctor --fix"
    assert read_files(home) == before
    found = run_doctor(home, "--fix")
    assert (found["errors"], found["fixed"]) == (0, ["search index"])
    assert run_doctor(home)["errors"] == 0


#: Row 6 of the index of words is the first task.
@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM task_index WHERE rowid = 1",
        "DELETE FROM prompt_tags",
        "DELETE FROM tag_counts",
        "DELETE FROM word_index WHERE rowid = 6",
        "INSERT INTO word_index (rowid, name) VALUES (4000, 'unknown')",
        "DELETE FROM task_edges WHERE task = 2 AND blocker = 1",
        "INSERT INTO task_edges VALUES (1, 2, 0)",
        "DELETE FROM open_tasks WHERE task = 2",
        "UPDATE open_tasks SET waits_for = 0 WHERE task = 2",
        "INSERT INTO claims VALUES (1, 1, 'ann', 'c', 1, 1, 1), (999, 1, 'ann', 'c', 1, 1, 1)",
    ],
)
def test_fix_fills_the_indexes_and_lists_again(home: Path, damage: str) -> None:
    """What they contain follows from prompts, resources and tasks alone."""
    before = read_derived(home / "default.db")
    sql(home / "default.db", damage)
    assert read_derived(home / "default.db") != before
    assert run_doctor(home, "--fix")["fixed"] == ["search index"]
    assert read_derived(home / "default.db") == before


def read_derived(path: Path) -> dict[str, list[Any]]:
    """Read the tables and the terms of the indexes that follow from the entities."""
    with closing(apsw.Connection(str(path))) as connection:
        found: dict[str, list[Any]] = {}
        for table in (
            "prompt_tags",
            "prompt_counts",
            "tag_counts",
            "task_edges",
            "open_tasks",
            "open_labels",
        ):
            found[table] = sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
        found["claims"] = connection.execute("SELECT task FROM claims ORDER BY task").fetchall()
        for index in ("prompt_index", "resource_index", "task_index", "word_index"):
            connection.execute(f"CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, {index}, instance)")
            found[index] = connection.execute("SELECT term, doc FROM temp.terms ORDER BY 1, 2").fetchall()
            connection.execute("DROP TABLE temp.terms")
        return found


def test_a_problem_that_cannot_be_fixed_is_reported_and_left_alone(home: Path) -> None:
    sql(home / "default.db", "UPDATE contents SET bytes = x'00' WHERE length(bytes) > 100")
    before = read_files(home)
    for options in ((), ("--fix",)):
        found = run_doctor(home, *options, status=1)
        assert "contents" in topics_at(found, "error")
        assert found["fixed"] == []
    assert "dittybag backup restore BACKUP --force" in find_topic(found, "contents")["fix"]
    assert read_files(home) == before


def test_a_claimed_task_that_nobody_holds_is_named(home: Path) -> None:
    """A task that a person put in work has no claim, and that is fine."""
    with StdioServerProcess("dittybag", "serve", env={"DITTYBAG_HOME": str(home)}) as server:
        server.handshake()
        call = {"name": "task_next", "arguments": {}}
        answer = server.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        number = answer["result"]["structuredContent"]["task"]["ref"].removeprefix("task:")
        sql(home / "default.db", f"DELETE FROM claims WHERE task = {number}")
        found = run_doctor(home)
        assert (found["warnings"], find_topic(found, "tasks")["level"]) == (1, "warning")
        assert find_topic(found, "tasks")["message"].endswith(f": {number}")
        dittybag(home, "task", "release", str(number))
        dittybag(home, "task", "next", str(number))
        sql(home / "default.db", f"DELETE FROM claims WHERE task = {number}")
        assert find_topic(run_doctor(home), "tasks")["message"].endswith(f": {number}")
        dittybag(home, "task", "release", str(number))
        dittybag(home, "task", "edit", str(number), "--status", "doing", "--assignee", "ann")
        assert run_doctor(home)["warnings"] == 0


def replace_database(path: Path, kind: str) -> None:
    content = path.read_bytes()
    if kind == "a folder":
        path.unlink()
        path.mkdir()
    elif kind == "a pipe":
        path.unlink()
        os.mkfifo(path)
    elif kind == "a dangling link":
        path.unlink()
        path.symlink_to("nowhere")
    elif kind == "newer":
        sql(path, f"PRAGMA user_version = {NEWEST_SCHEMA + 1}")
    else:
        path.write_bytes(
            {
                "empty": b"",
                "a text": b"dear diary\n" * 500,
                "zeros": bytes(len(content)),
                "half": content[: len(content) // 2],
                "a header": content[:100],
                "a page": content[:4096],
                "without its first page": content[4096:],
            }[kind]
        )


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        ("a folder", "error"),
        ("a pipe", "error"),
        ("a dangling link", "error"),
        ("newer", "error"),
        ("empty", "warning"),
        ("a text", "error"),
        ("zeros", "error"),
        ("half", "error"),
        ("a header", "error"),
        ("a page", "error"),
        ("without its first page", "error"),
    ],
)
def test_an_unusable_database_is_reported_with_a_fix(home: Path, kind: str, level: str) -> None:
    replace_database(home / "default.db", kind)
    before = None if kind == "a pipe" else read_files(home)
    result = dittybag(home, "doctor", "--fix", status=int(level == "error"))
    assert "Traceback" not in result.stdout + result.stderr
    assert result.stderr == ""
    found = run_doctor(home, status=int(level == "error"))
    assert topics_at(found, level)
    assert before is None or read_files(home) == before


def test_missing_permissions_are_reported(home: Path) -> None:
    def run() -> Any:
        result = subprocess.run(
            [*drop_privileges(), sys.executable, "-m", "dittybag", "doctor", "--json"],
            cwd=ROOT,
            env={**os.environ, "DITTYBAG_HOME": str(home)},
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert result.stderr == b""
        return msgspec.json.decode(result.stdout)["data"]

    file = home / "default.db"
    file.chmod(0o000)
    assert find_topic(run(), "permissions")["level"] == "error"
    file.chmod(0o400)
    home.chmod(0o500)
    try:
        found = run()
    finally:
        home.chmod(0o700)
    assert find_topic(found, "permissions")["level"] == "warning"
    assert (found["errors"], find_topic(found, "search index")["level"]) == (0, "ok")


def test_lax_permissions_are_noted(home: Path) -> None:
    home.chmod(0o755)
    (home / "default.db").chmod(0o644)
    found = run_doctor(home)
    assert found["warnings"] == 0
    assert "chmod 600" in find_topic(found, "permissions")["fix"]


def test_library_problems_are_reported_with_the_command_for_details(home: Path) -> None:
    library = home / "libraries" / "team"
    library.mkdir(parents=True)
    (library / "twig.toml").write_text("[prompts\n")
    checked = dittybag(home, "library", "check", status=1).stdout
    found = run_doctor(home, status=1)
    item = find_topic(found, "libraries")
    assert item["level"] == "error"
    assert item["fix"] == "dittybag library check team"
    assert item["message"].partition(": ")[0] in checked


def test_text_output_is_aligned_and_ends_with_a_summary(home: Path) -> None:
    result = dittybag(home, "doctor")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("ok ")
    column = lines[0].index("Dittybag")
    assert all(line[column - 1] == " " and line[column] != " " for line in lines[: lines.index("")])
    assert lines[-1] == "0 errors, 0 warnings"
    assert "\x1b" not in result.stdout


def test_a_terminal_gets_colours_unless_disabled(home: Path) -> None:
    assert "\x1b[32mok" in run_in_terminal(home, "doctor")
    plain = run_in_terminal(home, "doctor", variables={"NO_COLOR": "1"})
    assert "ok       versions" in plain
    # Lines of progress are erased.
    assert "\x1b" not in plain.replace("\x1b[2K", "")


def test_control_characters_in_names_are_replaced(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "evil\x1b[2J\x07\n.db"
    shutil.copy(home / "default.db", file)
    sql(file, "UPDATE contents SET bytes = x'00'")
    result = dittybag(home, "doctor", "--db", str(file), status=1)
    assert "evil" in result.stdout
    assert not set("\x1b\x07") & set(result.stdout)
    found = data(
        dittybag(home, "doctor", "--json", variables={"DITTYBAG_DATABASE_URL": f"{tmp_path}/\udcff.db"})
    )
    assert found["database"] == f"{tmp_path}/\ufffd.db"


# Corruption


Corruption = Callable[[random.Random, bytearray], None]


def flip_a_bit(rng: random.Random, content: bytearray) -> None:
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def flip_a_bit_at_the_start(rng: random.Random, content: bytearray) -> None:
    content[rng.randrange(4096)] ^= 1 << rng.randrange(8)


def flip_a_bit_in_the_header(rng: random.Random, content: bytearray) -> None:
    content[rng.randrange(100)] ^= 1 << rng.randrange(8)


def flip_a_bit_in_a_page_header(rng: random.Random, content: bytearray) -> None:
    page = rng.randrange(1, len(content) // 4096)
    content[page * 4096 + rng.randrange(32)] ^= 1 << rng.randrange(8)


def overwrite_bytes(rng: random.Random, content: bytearray) -> None:
    at = rng.randrange(len(content) - 300)
    content[at : at + 300] = rng.randbytes(300)


def zero_a_page(rng: random.Random, content: bytearray) -> None:
    page = rng.randrange(len(content) // 4096)
    content[page * 4096 : page * 4096 + 4096] = bytes(4096)


def swap_pages(rng: random.Random, content: bytearray) -> None:
    one, other = (4096 * page for page in rng.sample(range(len(content) // 4096), 2))
    content[one : one + 4096], content[other : other + 4096] = (
        content[other : other + 4096],
        content[one : one + 4096],
    )


def duplicate_a_page(rng: random.Random, content: bytearray) -> None:
    one, other = (4096 * page for page in rng.sample(range(len(content) // 4096), 2))
    content[one : one + 4096] = content[other : other + 4096]


def truncate(rng: random.Random, content: bytearray) -> None:
    del content[rng.randrange(len(content)) :]


CORRUPT: list[Corruption] = [
    flip_a_bit,
    flip_a_bit_at_the_start,
    flip_a_bit_in_the_header,
    flip_a_bit_in_a_page_header,
    overwrite_bytes,
    zero_a_page,
    swap_pages,
    duplicate_a_page,
    truncate,
]


def test_random_corruption_is_reported_with_a_fix_and_left_alone(home: Path) -> None:
    """Pages have no checksums, so a changed letter, or a page of an empty table, is not found."""
    path = home / "default.db"
    sound = path.read_bytes()
    config = settings({"DITTYBAG_HOME": str(home)})
    rng = random.Random(SEED)
    found = 0
    for number in range(CORRUPTIONS):
        corrupt = CORRUPT[number % len(CORRUPT)]
        content = bytearray(sound)
        corrupt(rng, content)
        for file in home.glob("default.db*"):
            file.unlink()
        path.write_bytes(content)
        health = run_checks(config, lambda *progress: None)
        assert path.read_bytes() == content, (number, corrupt.__name__)
        bad = [item for item in health.findings if item.level in ("error", "warning")]
        assert all(item.fix for item in bad), (number, bad)
        found += bool(bad)
    assert found > CORRUPTIONS * 0.4


def test_a_damaged_log_file_is_not_an_error_and_is_left_unchanged(home: Path) -> None:
    path, log = home / "default.db", home / "default.db-wal"
    config = settings({"DITTYBAG_HOME": str(home)})
    rng = random.Random(SEED)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("INSERT INTO sessions (id, state, used_at) VALUES (1, zeroblob(20000), 1)")
        whole, sound = log.read_bytes(), path.read_bytes()
    assert len(whole) > 20_000
    for _ in range(30):
        content = bytearray(whole)
        overwrite_bytes(rng, content)
        path.write_bytes(sound)
        log.write_bytes(content)
        (home / "default.db-shm").unlink(missing_ok=True)
        health = run_checks(config, lambda *progress: None)
        assert (path.read_bytes(), log.read_bytes()) == (sound, bytes(content))
        assert [item for item in health.findings if item.level == "error"] == []


def test_each_fix_is_named_once_and_that_of_an_error_first(home: Path) -> None:
    home.chmod(0o755)
    (home / "default.db").chmod(0o644)
    for name in ("b", "a"):
        library = home / "libraries" / name
        library.mkdir(parents=True)
        for file in ("one", "two"):
            (library / f"{file}.md").write_text("---\n[broken\n---\nx")
    damage_index(home / "default.db")
    found = run_doctor(home, status=1)
    fixes = [item["fix"] for item in found["fixes"]]
    assert len(set(fixes)) == len(fixes)
    assert set(fixes) == {item["fix"] for item in found["findings"] if item["level"] != "ok"}
    levels = [item["level"] for item in found["fixes"]]
    assert levels == sorted(levels, key=["error", "warning", "note"].index)
    assert levels[0] == "error"
    lines = dittybag(home, "doctor", status=1).stdout.splitlines()
    first = lines.index("What to do, the most important first:") + 1
    assert [line for line in lines[first:] if any(line.endswith(f". {fix}") for fix in fixes)] == [
        f"{number:>3}. {fix}" for number, fix in enumerate(fixes, 1)
    ]
