"""A running server refuses to acknowledge writes that could be lost, and says what happened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from dittybag.storage.sql.migration_files import NEWEST_SCHEMA
from tests.contracts.http_server_process import HttpServerProcess
from tests.stdio_server_process import StdioServerProcess


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "workspace.db"


@pytest.fixture
def server(database: Path) -> Iterator[StdioServerProcess]:
    with StdioServerProcess("dittybag", "serve", "--db", str(database)) as server:
        server.handshake()
        yield server


def call(server: StdioServerProcess, tool: str, **arguments: Any) -> tuple[bool, str]:
    """Call a tool. Returns whether it succeeded, and its text."""
    params = {"name": tool, "arguments": arguments}
    message = server.ask({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": params})
    result = message["result"]
    return not result["isError"], result["content"][0]["text"]


def count_tasks(database: Path) -> int:
    connection = apsw.Connection(str(database))
    try:
        return int(connection.execute("SELECT count(*) FROM tasks").get)
    finally:
        connection.close()


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("wrote_before", [True, False])
def test_a_write_is_refused_when_a_file_of_the_database_was_deleted(
    server: StdioServerProcess, database: Path, suffix: str, *, wrote_before: bool
) -> None:
    if wrote_before:
        assert call(server, "task_create", title="before")[0]
    Path(f"{database}{suffix}").unlink()
    for _ in range(2):
        succeeded, text = call(server, "task_create", title="after")
        assert not succeeded, "an acknowledged write would be lost"
        assert "was moved, deleted or replaced while it was in use; nothing was changed" in text
        assert "Restart" in text


def test_a_write_is_refused_when_the_log_was_replaced(server: StdioServerProcess, database: Path) -> None:
    assert call(server, "task_create", title="before")[0]
    log = Path(f"{database}-wal")
    content = log.read_bytes()
    log.unlink()
    log.write_bytes(content)
    assert not call(server, "task_create", title="after")[0]


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_server_behind_a_symbolic_link_notices_a_deleted_log(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "real" / "workspace.db")
    with StdioServerProcess("dittybag", "serve", "--db", str(link)) as server:
        server.handshake()
        assert call(server, "task_create", title="before")[0]
        (tmp_path / "real" / f"workspace.db{suffix}").unlink()
        assert not call(server, "task_create", title="after")[0]


def test_a_write_is_refused_when_another_process_has_upgraded_the_schema(
    server: StdioServerProcess, database: Path
) -> None:
    assert call(server, "task_create", title="before")[0]
    upgrade(database)
    succeeded, text = call(server, "task_create", title="after")
    assert not succeeded
    assert text.startswith("The database was written by a newer version of Dittybag; nothing was changed")
    assert count_tasks(database) == 1


def upgrade(database: Path) -> None:
    connection = apsw.Connection(str(database))
    connection.pragma("user_version", NEWEST_SCHEMA + 1)
    connection.close()


def delete_log(database: Path) -> None:
    Path(f"{database}-wal").unlink()


@pytest.mark.parametrize("happens", [upgrade, delete_log])
def test_a_server_that_can_no_longer_write_is_not_ready(database: Path, happens: Any) -> None:
    with HttpServerProcess("--db", str(database)) as host:
        assert host.get("/readyz").status == 200
        happens(database)
        response = host.get("/readyz")
        assert response.status == 503
        assert "Dittybag" in response.json()["problem"]


def test_a_failed_sync_is_not_reported_as_nothing_changed(tmp_path: Path, database: Path) -> None:
    switch = tmp_path / "fail"
    with StdioServerProcess(
        "tests.storage.sqlite.faulty_server", "sync", str(switch), "serve", "--db", str(database)
    ) as server:
        server.handshake()
        assert call(server, "task_create", title="before")[0]
        switch.touch()
        texts = [call(server, "task_create", title=f"refused {number}") for number in range(5)]
    # Killed: the log contains the last of them completely.
    assert count_tasks(database) > 1
    for succeeded, text in texts:
        assert not succeeded
        assert "may or may not have been saved" in text
        assert "nothing was changed" not in text


def test_writes_and_searches_continue_after_a_thread_could_not_start(tmp_path: Path, database: Path) -> None:
    switch = tmp_path / "fail"
    with StdioServerProcess(
        "tests.storage.sqlite.faulty_server", "threads", str(switch), "serve", "--db", str(database)
    ) as server:
        server.handshake()
        switch.touch()
        for _ in range(2):
            for tool, arguments in (("task_create", {"title": "refused"}), ("search", {"query": "refused"})):
                succeeded, text = call(server, tool, **arguments)
                assert not succeeded
                assert "nothing was changed" in text
        switch.unlink()
        assert call(server, "task_create", title="after")[0]
        succeeded, text = call(server, "search", query="after")
        assert succeeded
        assert "after" in text
        assert count_tasks(database) == 1
        database.unlink()
        assert not call(server, "task_update", task_id=1, title="too late")[0]
        server.hang_up()
        _, log, _ = server.rest()
    assert "task_create failed" in log
    assert "task_update failed" in log, "the log continues as well"


REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "task_create", "arguments": {"title": "x"}}),
    ("tools/call", {"name": "task_list", "arguments": {}}),
    ("tools/call", {"name": "search", "arguments": {"query": "x"}}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "kept"}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "x:kept"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "x", "value": ""}},
    ),
]


def damage(database: Path) -> None:
    """Overwrite the database and its log."""
    for file in (database, Path(f"{database}-wal"), Path(f"{database}-shm")):
        with file.open("r+b") as opened:
            opened.write(b"Not a database. " * (max(file.stat().st_size, 16) // 16))


@pytest.mark.parametrize("happens", [damage, upgrade, Path.unlink])
def test_every_failed_request_logs_at_most_one_line_and_no_traceback(
    server: StdioServerProcess, database: Path, happens: Any
) -> None:
    assert call(server, "task_create", title="before")[0]
    happens(database)
    failed = 0
    for number, (method, params) in enumerate(REQUESTS):
        message = server.ask({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        failed += "error" in message or bool(message["result"].get("isError"))
    server.hang_up()
    _, log, _ = server.rest()
    lines = log.splitlines()
    assert "Traceback" not in log
    # Some fail because what they ask for does not exist.
    assert 0 < len(lines) <= failed, log
    assert all(str(database) in line for line in lines)
