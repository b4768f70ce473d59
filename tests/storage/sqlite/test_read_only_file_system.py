"""`--read-only` serves a database on a read-only file system."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.http_server_process import HttpServerProcess, McpHttpClient
from tests.stdio_server_process import StdioServerProcess
from tests.storage.sqlite.scripted_process import unshare_mounts

SERVER = "tests.storage.sqlite.read_only_server"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    unshare_mounts()
    return tmp_path / "folder with 100% ümläuts?" / "workspace.db"


def call(name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": params}


def fill(database: Path, how: signal.Signals) -> None:
    """Create a database with a task by a server that ends in this way."""
    with StdioServerProcess("dittybag", "serve", "--db", str(database)) as server:
        server.handshake()
        assert not server.ask(call("task_create", title="kept"))["result"]["isError"]
        server.process.send_signal(how)
        server.rest()


def test_it_is_served_on_stdio_and_no_file_is_created(database: Path) -> None:
    fill(database, signal.SIGTERM)
    before = sorted(database.parent.iterdir())
    with StdioServerProcess(
        SERVER, str(database.parent), "serve", "--read-only", "--db", str(database)
    ) as server:
        server.handshake()
        assert "kept" in str(server.ask(call("task_list")))
        assert "kept" in str(server.ask(call("search", query="kept")))
    assert sorted(database.parent.iterdir()) == before


def test_it_is_served_over_http(database: Path) -> None:
    fill(database, signal.SIGTERM)
    serve = ("serve", "--http", "127.0.0.1:0", "--read-only", "--db", str(database))
    with HttpServerProcess(str(database.parent), *serve, module=SERVER) as host:
        assert host.get("/readyz").status == 200
        client = McpHttpClient(host)
        initialize = (
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
            b'"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}'
        )
        assert "result" in client.exchange(initialize)
        assert client.session is not None
        task_list = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"task_list"}}'
        assert "kept" in str(client.exchange(task_list))
        client.close()


def test_a_log_that_a_killed_server_left_is_refused_clearly(database: Path) -> None:
    fill(database, signal.SIGKILL)
    Path(f"{database}-shm").unlink()
    with StdioServerProcess(
        SERVER, str(database.parent), "serve", "--read-only", "--db", str(database)
    ) as server:
        _, error, status = server.rest()
    assert status != 0
    assert "write-ahead log" in error
    assert "open it once where it can be written" in error


def test_without_the_option_it_is_refused(database: Path) -> None:
    fill(database, signal.SIGTERM)
    with StdioServerProcess(SERVER, str(database.parent), "serve", "--db", str(database)) as server:
        _, error, status = server.rest()
    assert status != 0
    assert "The database is read-only" in error
