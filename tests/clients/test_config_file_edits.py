"""Edits of configuration files on disk: what is preserved, and what happens when something fails."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dittybag.clients import config_files
from dittybag.clients.client_errors import (
    ClientFileBusy,
    ClientFileRefused,
    ClientFileUnreachable,
)
from dittybag.clients.connector import Launch, connection_status
from dittybag.clients.known_clients import CLIENTS, ConfigScope
from tests.clients.client_file_fixture import LAUNCH, PROJECT_LAUNCH, ClientFileFixture

CLIENT_SCOPES: list[tuple[str, ConfigScope]] = [
    (name, scope)
    for name, client in CLIENTS.items()
    for scope in ("user", "project")
    if scope == "user" or client.project_file
]
CONTAINER_KEYS = {"vscode": "servers", "zed": "context_servers"}
CLIENTS_WITH_TYPE_FIELD = ("claude-code", "cursor", "vscode")


@pytest.fixture
def client_file(tmp_path: Path) -> ClientFileFixture:
    return ClientFileFixture(tmp_path, "cursor")


@pytest.mark.parametrize(("client", "scope"), CLIENT_SCOPES)
def test_a_missing_file_is_created_and_removed(tmp_path: Path, client: str, scope: ConfigScope) -> None:
    (tmp_path / "home").mkdir()
    client_file = ClientFileFixture(tmp_path, client, scope)
    assert client_file.connect().backup is None
    typed = {"type": "stdio"} if client in CLIENTS_WITH_TYPE_FIELD else {}
    expected = {**typed, "command": LAUNCH.command, "args": ["serve"], "env": {"DITTYBAG_HOME": "/srv/bag"}}
    assert client_file.entry() == expected
    if client != "codex":
        key = CONTAINER_KEYS.get(client, "mcpServers")
        assert json.loads(client_file.text()) == {key: {"dittybag": expected}}
    else:
        assert client_file.text().startswith("[mcp_servers.dittybag]\n")
    assert client_file.file.stat().st_mode & 0o077 == (0 if scope == "user" else 0o044)
    assert client_file.connect(PROJECT_LAUNCH).state == "updated"
    assert client_file.remove().state == "removed"
    assert list((tmp_path / "home").iterdir()) == []
    assert not (tmp_path / "work").exists() or list((tmp_path / "work").iterdir()) == []


def test_a_created_file_stays_if_it_has_other_entries(client_file: ClientFileFixture) -> None:
    client_file.connect()
    text = json.loads(client_file.text())
    text["mcpServers"]["other"] = {"command": "x"}
    client_file.write(json.dumps(text))
    client_file.remove()
    assert json.loads(client_file.text()) == {"mcpServers": {"other": {"command": "x"}}}


def test_a_created_folder_stays_if_it_has_other_files(client_file: ClientFileFixture) -> None:
    client_file.connect()
    (client_file.file.parent / "argv.json").touch()
    client_file.remove()
    assert [file.name for file in client_file.file.parent.iterdir()] == ["argv.json"]


def test_one_copy_is_kept_until_the_last_entry_is_removed(client_file: ClientFileFixture) -> None:
    before = client_file.write('{"secret": 1}')
    other = ClientFileFixture(client_file.data_folder.parent, "cursor", name="second")
    first, second = client_file.connect(), client_file.connect(PROJECT_LAUNCH)
    assert second.backup is None
    assert other.connect().backup is None
    assert first.backup is not None
    assert Path(first.backup).read_bytes() == before
    assert client_file.copies() == [Path(first.backup)]
    for path in [client_file.data_folder / "connect", *(client_file.data_folder / "connect").rglob("*")]:
        if path.name != "lock":
            assert path.stat().st_mode & 0o077 == 0, path
    client_file.remove()
    assert client_file.copies() == [Path(first.backup)]
    other.remove()
    assert client_file.read() == before
    assert client_file.copies() == []


def test_a_copy_is_not_restored_over_later_edits(client_file: ClientFileFixture) -> None:
    client_file.write('{\n  // mine\n  "a": 1\n}\n')
    client_file.connect()
    client_file.write(client_file.text().replace("// mine", "// mine, too"))
    client_file.remove()
    assert json.loads(client_file.text().replace("// mine, too", "")) == {"a": 1, "mcpServers": {}}
    assert "// mine, too" in client_file.text()
    assert client_file.copies() == []


def test_a_copy_with_an_entry_is_not_made(client_file: ClientFileFixture) -> None:
    """What was there before Dittybag's first entry is not known."""
    client_file.write(json.dumps({"mcpServers": {"dittybag": {"command": "dittybag", "args": ["serve"]}}}))
    assert client_file.connect().state == "updated"
    assert client_file.copies() == []
    client_file.remove()
    assert client_file.text() == '{"mcpServers": {}}'


def test_a_link_out_of_a_project_is_not_followed(tmp_path: Path) -> None:
    """A repository can contain links, also as a folder above the file."""
    secret = tmp_path / "home" / "settings.json"
    secret.parent.mkdir()
    secret.write_text("{}")
    folder = tmp_path / "work" / ".cursor"
    folder.mkdir(parents=True)
    for link, target in ((folder / "mcp.json", secret), (folder, secret.parent)):
        if link.is_dir():
            link.rmdir()
        link.symlink_to(target)
        client_file = ClientFileFixture(tmp_path, "cursor", "project")
        for attempt in (client_file.connect, client_file.remove):
            with pytest.raises(ClientFileRefused, match="a symbolic link leads out of the project"):
                attempt()
        assert connection_status(client_file.target, LAUNCH).state == "unreadable"
        link.unlink()
    assert secret.read_text() == "{}"
    assert [path.name for path in secret.parent.iterdir()] == ["settings.json"]
    (tmp_path / "work" / "kept").mkdir()
    folder.symlink_to("kept")
    ClientFileFixture(tmp_path, "cursor", "project").connect()
    assert (tmp_path / "work" / "kept" / "mcp.json").exists()


def test_a_dry_run_changes_no_file(client_file: ClientFileFixture) -> None:
    client_file.write('{\n  "a": 1\n}\n')
    before = client_file.all_files()
    result = client_file.connect(dry_run=True)
    assert (result.state, result.backup) == ("connected", None)
    assert result.diff.splitlines() == [
        f"--- {client_file.file}",
        f"+++ {client_file.file}",
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
    assert client_file.all_files() == before
    assert not client_file.data_folder.exists()
    client_file.connect()
    before = client_file.all_files()
    assert client_file.connect(dry_run=True).diff == ""
    removal = client_file.remove(dry_run=True)
    assert removal.state == "removed"
    assert '-    "dittybag": {' in removal.diff.splitlines()
    assert client_file.all_files() == before


def test_a_diff_in_a_long_line_is_cut_to_its_context(client_file: ClientFileFixture) -> None:
    client_file.write(json.dumps({"long": "x" * 100_000, "mcpServers": {"a": {"command": "b"}}}))
    diff = client_file.connect(dry_run=True).diff
    assert len(diff) < 3000
    assert '"dittybag": {' in diff


def test_mode_and_owner_are_preserved(client_file: ClientFileFixture) -> None:
    client_file.write("{}")
    client_file.file.chmod(0o640)
    os.chown(client_file.file, os.getuid(), 12345 if os.getuid() == 0 else os.getgid())
    before = client_file.file.stat()
    client_file.connect()
    after = client_file.file.stat()
    assert after.st_ino != before.st_ino
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert [path.name for path in client_file.file.parent.iterdir()] == ["mcp.json"]


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles" / "cursor.json"
    kept.parent.mkdir()
    kept.write_text("{}")
    link = tmp_path / "home" / ".cursor" / "mcp.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(kept)
    client_file = ClientFileFixture(tmp_path, "cursor")
    client_file.connect()
    assert link.is_symlink()
    assert "dittybag" in kept.read_text()
    client_file.remove()
    assert link.is_symlink()
    assert kept.read_text() == "{}"


def test_a_symbolic_link_loop_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "home" / ".cursor" / "mcp.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(link)
    with pytest.raises(ClientFileUnreachable):
        ClientFileFixture(tmp_path, "cursor").connect()
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
def test_a_file_that_is_not_text_is_refused(
    client_file: ClientFileFixture, make: object, problem: str
) -> None:
    assert callable(make)
    client_file.file.parent.mkdir(parents=True)
    make(client_file.file)
    for attempt in (client_file.connect, client_file.remove):
        with pytest.raises(ClientFileRefused) as refused:
            attempt()
        assert refused.value.problem == problem
    assert connection_status(client_file.target, LAUNCH).problem == problem
    assert [path.name for path in client_file.file.parent.iterdir()] == ["mcp.json"]


def test_a_large_file_is_no_trouble(client_file: ClientFileFixture) -> None:
    history = [{"display": "x" * 50, "pasted": {"n": [number, None]}} for number in range(20_000)]
    before = client_file.write(json.dumps({"history": history, "mcpServers": {"a": {}}}, indent=2))
    assert len(before) > 2 * 1024 * 1024
    client_file.connect()
    assert client_file.entry()["command"] == LAUNCH.command
    client_file.remove()
    assert client_file.read() == before


def test_a_write_protected_file_is_not_changed(client_file: ClientFileFixture) -> None:
    before = client_file.write("{}")
    client_file.file.chmod(0o444)
    with pytest.raises(ClientFileRefused, match="write-protected"):
        client_file.connect()
    assert client_file.read() == before
    assert client_file.copies() == []
    assert [path.name for path in client_file.file.parent.iterdir()] == ["mcp.json"]


@pytest.mark.parametrize("mode", [0o555, 0o777])
def test_a_file_without_permission_is_not_changed(mode: int) -> None:
    """In a read-only folder, and where the new file would get another owner."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        client_file = ClientFileFixture(Path(folder), "cursor")
        before = client_file.write("{}")
        client_file.data_folder.mkdir()
        client_file.data_folder.chmod(0o777)
        client_file.file.parent.chmod(mode)
        with _drop_privileges():
            if os.geteuid() == client_file.file.stat().st_uid and mode == 0o777:
                pytest.skip("needs a second user")
            with pytest.raises(ClientFileUnreachable, match=r"Permission denied|not permitted"):
                client_file.connect()
        client_file.file.parent.chmod(0o755)
        assert client_file.read() == before
        assert [path.name for path in client_file.file.parent.iterdir()] == ["mcp.json"]


@contextmanager
def _drop_privileges() -> Iterator[None]:
    """Run as an unprivileged user if this is root, who may do everything."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(was)


class ProcessKilled(BaseException):
    """Simulates a process that is killed."""


@pytest.mark.parametrize("before", [None, "{ }", '{\n  "a": 1 // x\n}\n'])
@pytest.mark.parametrize("step", ["first", "second", "last"])
def test_a_process_killed_at_any_moment_leaves_a_consistent_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None, step: str
) -> None:
    for moment in range(100):
        client_file = ClientFileFixture(tmp_path / str(moment), "cursor")
        if before is not None:
            client_file.write(before)
        if step != "first":
            client_file.connect()
        was = client_file.read() if client_file.file.exists() else None
        with monkeypatch.context() as patch:
            left = [moment]
            for name in ("fsync", "replace", "unlink"):
                patch.setattr(os, name, _kill_at(getattr(os, name), left))
            try:
                if step == "last":
                    client_file.remove()
                else:
                    client_file.connect(LAUNCH if step == "first" else PROJECT_LAUNCH)
            except ProcessKilled:
                is_killed = True
            else:
                is_killed = False
        now = client_file.read() if client_file.file.exists() else None
        if step != "last" and now != was:
            assert client_file.entry() is not None
        client_file.remove()
        assert (client_file.text() if client_file.file.exists() else None) == before
        if not is_killed:
            assert moment > 3
            return
    pytest.fail("the process never finished")


def _kill_at(function: Callable[..., None], left: list[int]) -> Callable[..., None]:
    """A system call that kills the process when the counter reaches zero."""

    def call(*arguments: Any, **others: Any) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise ProcessKilled
        function(*arguments, **others)

    return call


def test_nothing_is_edited_without_a_data_folder(client_file: ClientFileFixture) -> None:
    before = client_file.write("{}")
    client_file.data_folder.write_text("here")
    with pytest.raises(ClientFileUnreachable, match="dittybag/connect: cannot be accessed"):
        client_file.connect()
    assert client_file.read() == before


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "dittybag", "args": ["serve"]},
        {"command": "C:\\bin\\dittybag.exe", "args": ["serve", "--project", "x"]},
        {"command": "/usr/bin/python3", "args": ["-m", "dittybag", "serve"]},
        {"command": "uvx", "args": ["dittybag", "serve"]},
    ],
)
def test_a_manually_added_entry_is_removed(client_file: ClientFileFixture, entry: object) -> None:
    client_file.write(json.dumps({"mcpServers": {"a": {}, "dittybag": entry, "b": {}}}))
    assert client_file.remove().state == "removed"
    assert client_file.text() == '{"mcpServers": {"a": {}, "b": {}}}'


def test_the_connection_status_is_reported(client_file: ClientFileFixture) -> None:
    assert connection_status(client_file.target, LAUNCH).state == "absent"
    program = str(client_file.data_folder.parent / "dittybag.exe")
    Path(program).touch(0o755)
    client_file.connect(Launch(program, (), ("serve", "--db", "x")))
    assert connection_status(client_file.target, Launch(program)).names == ("dittybag",)
    moved = Launch("/usr/bin/python3", ("-m", "dittybag"))
    assert connection_status(client_file.target, moved).state == "other"
    client_file.write(json.dumps({"mcpServers": {"x": {"command": program, "args": ["serve"]}, "y": 1}}))
    assert connection_status(client_file.target, Launch(program)).names == ("x",)
    Path(program).unlink()
    status = connection_status(client_file.target, Launch(program))
    assert (status.state, status.problem) == ("broken", f"the program {program} does not exist")
    client_file.write("[")
    assert connection_status(client_file.target, LAUNCH).state == "unreadable"


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
def test_values_that_a_client_would_change_are_refused(
    tmp_path: Path, client: str, text: str, is_refused: bool
) -> None:
    client_file = ClientFileFixture(tmp_path, client)
    launch = Launch(text, ("-m", "dittybag"))
    if is_refused:
        with pytest.raises(ClientFileRefused):
            client_file.connect(launch)
        assert not client_file.file.exists()
    else:
        client_file.connect(launch)
        assert client_file.entry()["command"] == text
        assert client_file.connect(launch).state == "unchanged"


def test_concurrent_edits_lose_nothing(tmp_path: Path) -> None:
    client_files = [ClientFileFixture(tmp_path, "cursor", name=f"dittybag-{number}") for number in range(8)]
    before = client_files[0].write('{"mcpServers": {"a": {}}}')
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda client_file: client_file.connect(), client_files))
    assert len(json.loads(client_files[0].text())["mcpServers"]) == 9
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda client_file: client_file.remove(), client_files))
    assert client_files[0].read() == before


def test_a_concurrent_write_of_the_client_is_not_lost(
    client_file: ClientFileFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client writes between our read and rename: first once, then every time."""
    client_file.write('{"n": 0}')
    real, times = os.fsync, [1]

    def fsync(descriptor: int) -> None:
        real(descriptor)
        beside = [path.stat().st_ino for path in client_file.file.parent.glob(".dittybag-*")]
        if os.fstat(descriptor).st_ino in beside and times[0] > 0:
            times[0] -= 1
            text = json.loads(client_file.text())
            client_file.write(json.dumps({"n": text["n"] + 1}))

    monkeypatch.setattr(os, "fsync", fsync)
    client_file.connect()
    assert json.loads(client_file.text())["n"] == 1
    client_file.remove()
    assert client_file.text() == '{"n": 1}'
    times[0] = 1000
    with pytest.raises(ClientFileBusy, match="keeps changing"):
        client_file.connect()
    assert set(json.loads(client_file.text())) == {"n"}
    assert client_file.copies() == []
    assert [path.name for path in client_file.file.parent.iterdir()] == ["mcp.json"]
