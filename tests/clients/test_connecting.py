"""Configuration files on the disk: what stays theirs, and what happens when something is in the way."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dittybag.clients import config_files
from dittybag.clients.client_errors import (
    ClientEntryForeign,
    ClientFileBusy,
    ClientFileRefused,
    ClientFileUnreachable,
)
from dittybag.clients.connector import Launch, connection_status
from dittybag.clients.known_clients import CLIENTS, ConfigScope
from tests.clients.machines import LAUNCH, OTHER, Place

PLACES: list[tuple[str, ConfigScope]] = [
    (name, scope)
    for name, client in CLIENTS.items()
    for scope in ("user", "project")
    if scope == "user" or client.project_file
]
KEYS = {"vscode": "servers", "zed": "context_servers"}
TYPED = ("claude-code", "cursor", "vscode")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, "cursor")


@pytest.mark.parametrize(("client", "scope"), PLACES)
def test_a_file_that_was_not_there_is_made_and_removed(
    tmp_path: Path, client: str, scope: ConfigScope
) -> None:
    (tmp_path / "home").mkdir()
    place = Place(tmp_path, client, scope)
    assert place.connect().backup is None
    typed = {"type": "stdio"} if client in TYPED else {}
    expected = {**typed, "command": LAUNCH.command, "args": ["serve"], "env": {"DITTYBAG_HOME": "/srv/bag"}}
    assert place.entry() == expected
    if client != "codex":
        key = KEYS.get(client, "mcpServers")
        assert json.loads(place.text()) == {key: {"dittybag": expected}}
    else:
        assert place.text().startswith("[mcp_servers.dittybag]\n")
    assert place.file.stat().st_mode & 0o077 == (0 if scope == "user" else 0o044)
    assert place.connect(OTHER).state == "updated"
    assert place.remove().state == "removed"
    assert list((tmp_path / "home").iterdir()) == []
    assert not (tmp_path / "work").exists() or list((tmp_path / "work").iterdir()) == []


def test_a_file_that_was_made_stays_if_others_use_it(place: Place) -> None:
    place.connect()
    text = json.loads(place.text())
    text["mcpServers"]["other"] = {"command": "x"}
    place.write(json.dumps(text))
    place.remove()
    assert json.loads(place.text()) == {"mcpServers": {"other": {"command": "x"}}}


def test_a_folder_that_was_made_stays_if_others_use_it(place: Place) -> None:
    place.connect()
    (place.file.parent / "argv.json").touch()
    place.remove()
    assert not place.file.exists()
    assert place.file.parent.exists()


def test_the_file_as_it_was_is_put_aside(place: Place) -> None:
    before = place.write('{"secret": 1}')
    first, second = place.connect(), place.connect(OTHER)
    assert first.backup != second.backup
    assert first.backup is not None
    assert Path(first.backup).read_bytes() == before
    for path in [place.ours / "connect", *(place.ours / "connect").rglob("*")]:
        if path.name != "lock":
            assert path.stat().st_mode & 0o077 == 0, path


def test_a_dry_run_changes_nothing_at_all(place: Place) -> None:
    place.write('{\n  "a": 1\n}\n')
    before = place.everything()
    outcome = place.connect(dry_run=True)
    assert (outcome.state, outcome.backup) == ("connected", None)
    assert outcome.diff.splitlines() == [
        f"--- {place.file}",
        f"+++ {place.file}",
        "@@ -1,3 +1,11 @@",
        " {",
        '-  "a": 1',
        '+  "a": 1,',
        '+  "mcpServers": {',
        '+    "dittybag": {',
        '+      "type": "stdio",',
        '+      "command": "/opt/dittybag/bin/dittybag",',
        '+      "args": ["serve"],',
        '+      "env": {"DITTYBAG_HOME": "/srv/bag"}',
        "+    }",
        "+  }",
        " }",
    ]
    assert place.everything() == before
    assert not place.ours.exists()
    place.connect()
    before = place.everything()
    assert place.connect(dry_run=True).diff == ""
    removal = place.remove(dry_run=True)
    assert removal.state == "removed"
    assert '-    "dittybag": {' in removal.diff.splitlines()
    assert place.everything() == before


def test_a_difference_far_down_is_numbered_right(place: Place) -> None:
    lines = [f'  "k{number}": {number},' for number in range(5000)]
    place.write("\n".join(["{", *lines, '  "last": 0', "}"]))
    diff = place.connect(dry_run=True).diff.splitlines()
    assert diff[2] == "@@ -4999,5 +4999,13 @@"
    assert diff[3] == ' "k4997": 4997,'.replace(' "', '   "')
    assert diff[-1] == r"\ No newline at end of file"


def test_a_difference_in_one_long_line_shows_its_surroundings(place: Place) -> None:
    place.write(json.dumps({"long": "x" * 100_000, "mcpServers": {"a": {"command": "b"}}}))
    diff = place.connect(dry_run=True).diff
    assert len(diff) < 3000
    assert '"dittybag": {' in diff


def test_mode_and_owner_stay(place: Place) -> None:
    place.write("{}")
    place.file.chmod(0o640)
    os.chown(place.file, os.getuid(), 12345 if os.getuid() == 0 else os.getgid())
    before = place.file.stat()
    place.connect()
    after = place.file.stat()
    assert after.st_ino != before.st_ino
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert [path.name for path in place.file.parent.iterdir()] == ["mcp.json"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles" / "cursor.json"
    kept.parent.mkdir()
    kept.write_text("{}")
    link = tmp_path / "home" / ".cursor" / "mcp.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(kept)
    place = Place(tmp_path, "cursor")
    place.connect()
    assert link.is_symlink()
    assert "dittybag" in kept.read_text()
    place.remove()
    assert link.is_symlink()
    assert kept.read_text() == "{}"


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "home" / ".cursor" / "mcp.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(link)
    with pytest.raises(ClientFileUnreachable):
        Place(tmp_path, "cursor").connect()
    assert link.is_symlink()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: path.write_bytes(b'{"a": "\xff"}'), "not UTF-8 text"),
        (lambda path: path.write_text("{}", "utf-16"), "not UTF-8 text"),
        (lambda path: path.mkdir(), "not a regular file"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.write_bytes(b" " * (config_files.MAX_FILE_BYTES + 1)), "larger than 16 MiB"),
    ],
)
def test_what_is_no_text_file_is_refused(place: Place, make: object, problem: str) -> None:
    assert callable(make)
    place.file.parent.mkdir(parents=True)
    make(place.file)
    for attempt in (place.connect, place.remove):
        with pytest.raises(ClientFileRefused) as refused:
            attempt()
        assert refused.value.problem == problem
    assert connection_status(place.target, LAUNCH).problem == problem
    assert [path.name for path in place.file.parent.iterdir()] == ["mcp.json"]


def test_a_large_file_is_no_trouble(place: Place) -> None:
    history = [{"display": "x" * 50, "pasted": {"n": [number, None]}} for number in range(20_000)]
    before = place.write(json.dumps({"history": history, "mcpServers": {"a": {}}}, indent=2))
    assert len(before) > 2 * 1024 * 1024
    place.connect()
    assert place.entry()["command"] == LAUNCH.command
    place.remove()
    assert place.read() == before


def test_a_write_protected_file_is_left_alone(place: Place) -> None:
    before = place.write("{}")
    place.file.chmod(0o444)
    with pytest.raises(ClientFileRefused, match="write-protected"):
        place.connect()
    assert place.read() == before
    assert [path.name for path in place.file.parent.iterdir()] == ["mcp.json"]


@pytest.mark.parametrize("mode", [0o555, 0o777])
def test_what_the_system_forbids_is_not_done(mode: int) -> None:
    """Neither in a folder that may not be written to, nor if the file would belong to somebody else then."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        place = Place(Path(folder), "cursor")
        before = place.write("{}")
        place.ours.mkdir()
        place.ours.chmod(0o777)
        place.file.parent.chmod(mode)
        with _as_nobody():
            if os.geteuid() == place.file.stat().st_uid and mode == 0o777:
                pytest.skip("there is nobody else to be")
            with pytest.raises(ClientFileUnreachable, match=r"Permission denied|not permitted"):
                place.connect()
        place.file.parent.chmod(0o755)
        assert place.read() == before
        assert [path.name for path in place.file.parent.iterdir()] == ["mcp.json"]


@contextmanager
def _as_nobody() -> Iterator[None]:
    """Nothing is forbidden to root."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(was)


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("before", [None, "{ }", '{\n  "a": 1 // x\n}\n'])
@pytest.mark.parametrize("step", ["first", "second", "last"])
def test_a_process_that_is_killed_at_any_moment_leaves_no_mess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None, step: str
) -> None:
    for moment in range(100):
        place = Place(tmp_path / str(moment), "cursor")
        if before is not None:
            place.write(before)
        if step != "first":
            place.connect()
        was = place.read() if place.file.exists() else None
        with monkeypatch.context() as patch:
            left = [moment]
            for name in ("fsync", "replace", "unlink"):
                patch.setattr(os, name, _deadly(getattr(os, name), left))
            try:
                if step == "last":
                    place.remove()
                else:
                    place.connect(LAUNCH if step == "first" else OTHER)
            except Killed:
                is_killed = True
            else:
                is_killed = False
        now = place.read() if place.file.exists() else None
        if step != "last" and now != was:
            assert place.entry() is not None
        place.remove()
        assert (place.text() if place.file.exists() else None) == before
        if not is_killed:
            assert moment > 3
            return
    pytest.fail("it never ends")


def _deadly(function: Callable[..., None], left: list[int]) -> Callable[..., None]:
    """A call of the system that a process does not survive, when its time has come."""

    def call(*arguments: Any, **others: Any) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise Killed
        function(*arguments, **others)

    return call


def test_a_file_in_the_place_of_a_folder(place: Place) -> None:
    place.file.parent.parent.mkdir(parents=True)
    place.file.parent.write_text("here")
    with pytest.raises(ClientFileUnreachable, match="Not a directory"):
        place.connect()
    assert place.file.parent.read_text() == "here"


def test_no_folder_of_our_own_no_edit(place: Place) -> None:
    before = place.write("{}")
    place.ours.write_text("here")
    with pytest.raises(ClientFileUnreachable, match="dittybag/connect: cannot be accessed"):
        place.connect()
    assert place.read() == before


def test_a_backup_that_fails_stops_everything(place: Place) -> None:
    before = place.write("{}")
    (place.ours / "connect").mkdir(parents=True)
    (place.ours / "connect" / "backups").write_text("here")
    with pytest.raises(ClientFileUnreachable):
        place.connect()
    assert place.read() == before


@pytest.mark.parametrize("garbage", [b"", b"[", b"{}", b'[{"file": 1}]', b"\xff", b"[]"])
def test_a_damaged_record_does_no_harm(place: Place, garbage: bytes) -> None:
    place.write('{\n  "a": 1\n}\n')
    place.connect()
    (record,) = (place.ours / "connect").glob("*.json")
    record.write_bytes(garbage)
    assert place.remove().state == "removed"
    assert json.loads(place.text()) == {"a": 1, "mcpServers": {}}


def test_a_forged_record_cannot_change_anything_else(place: Place) -> None:
    place.write('{"mcpServers": {"a": {"command": "mine"}}}')
    place.connect()
    (record,) = (place.ours / "connect").glob("*.json")
    (edit,) = json.loads(record.read_bytes())
    at = place.text().index('"mine"') - place.text().index('"dittybag"')
    edit["splices"] = [[at, '"yours"', '"mine"'], *edit["splices"]]
    record.write_text(json.dumps([edit]))
    place.remove()
    assert json.loads(place.text()) == {"mcpServers": {"a": {"command": "mine"}}}


def test_an_edit_that_was_stopped_half_way_is_taken_back_all_the_same(place: Place, tmp_path: Path) -> None:
    before = place.write('{"a":1}')
    place.connect()
    first = place.read()
    place.connect(OTHER)
    second = place.read()
    (record,) = (place.ours / "connect").glob("*.json")
    # Stopped after the record of the second edit was written, and before the file was.
    latest = json.loads(record.read_bytes())
    place.write(before)
    shutil.rmtree(place.ours)
    place.connect()
    assert place.read() == first
    record.write_text(json.dumps([*latest, *json.loads(record.read_bytes())]))
    place.remove()
    assert place.read() == before
    # Stopped after the file was written, and before the first edit was forgotten.
    place.connect()
    record.write_text(json.dumps([*latest, *json.loads(record.read_bytes())]))
    place.write(second)
    place.remove()
    assert place.read() == before


def test_an_entry_of_another_program_is_not_removed(place: Place) -> None:
    before = place.write('{"mcpServers": {"dittybag": {"command": "/bin/bag", "args": ["serve"]}}}')
    with pytest.raises(ClientEntryForeign):
        place.remove()
    assert place.read() == before


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "dittybag", "args": ["serve"]},
        {"command": "C:\\bin\\dittybag.exe", "args": ["serve", "--project", "x"]},
        {"command": "/usr/bin/python3", "args": ["-m", "dittybag", "serve"]},
        {"command": "uvx", "args": ["dittybag", "serve"]},
    ],
)
def test_an_entry_that_was_made_by_hand_is_removed(place: Place, entry: object) -> None:
    place.write(json.dumps({"mcpServers": {"a": {}, "dittybag": entry, "b": {}}}))
    assert place.remove().state == "removed"
    assert place.text() == '{"mcpServers": {"a": {}, "b": {}}}'


def test_how_things_stand(place: Place) -> None:
    assert connection_status(place.target, LAUNCH).state == "absent"
    place.connect(OTHER)
    assert connection_status(place.target, LAUNCH).names == ("dittybag",)
    moved = Launch("/usr/bin/python3", ("-m", "dittybag"))
    assert connection_status(place.target, moved).state == "other"
    place.write(json.dumps({"mcpServers": {"x": {"command": LAUNCH.command, "args": ["serve"]}, "y": 1}}))
    assert connection_status(place.target, LAUNCH).names == ("x",)
    place.write("[")
    assert connection_status(place.target, LAUNCH).state == "unreadable"


@pytest.mark.parametrize(
    ("client", "text", "is_refused"),
    [
        ("claude-code", "/a/${HOME}", True),
        ("claude-code", "/a/$HOME", False),
        ("gemini", "/a/$HOME", True),
        ("codex", "/a/${HOME}", False),
        ("cursor", "/a/\udcff", True),
        ("codex", 'quo"te \\ \x7f \x01 ü', False),
        ("windsurf", 'quo"te \\ \x7f \x01 ü', False),
    ],
)
def test_texts_that_would_not_arrive_as_they_are(
    tmp_path: Path, client: str, text: str, is_refused: bool
) -> None:
    place = Place(tmp_path, client)
    launch = Launch(text)
    if is_refused:
        with pytest.raises(ClientFileRefused):
            place.connect(launch)
        assert not place.file.exists()
    else:
        place.connect(launch)
        assert place.entry()["command"] == text
        assert place.connect(launch).state == "unchanged"


def test_several_at_once_lose_nothing(tmp_path: Path) -> None:
    places = [Place(tmp_path, "cursor", name=f"dittybag-{number}") for number in range(8)]
    before = places[0].write('{"mcpServers": {"a": {}}}')
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda place: place.connect(), places))
    assert len(json.loads(places[0].text())["mcpServers"]) == 9
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda place: place.remove(), places))
    assert places[0].read() == before


def test_a_client_that_writes_meanwhile_loses_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the reading and the renaming, the file gets another entry; once, then again and again."""
    place.write('{"n": 0}')
    real, times = os.fsync, [1]

    def fsync(descriptor: int) -> None:
        real(descriptor)
        beside = [path.stat().st_ino for path in place.file.parent.glob(".mcp.json.*")]
        if os.fstat(descriptor).st_ino in beside and times[0] > 0:
            times[0] -= 1
            text = json.loads(place.text())
            place.write(json.dumps({"n": text["n"] + 1}))

    monkeypatch.setattr(os, "fsync", fsync)
    place.connect()
    assert json.loads(place.text())["n"] == 1
    place.remove()
    assert place.text() == '{"n": 1}'
    times[0] = 1000
    with pytest.raises(ClientFileBusy, match="keeps changing"):
        place.connect()
    assert set(json.loads(place.text())) == {"n"}
    assert [path.name for path in place.file.parent.iterdir()] == ["mcp.json"]
