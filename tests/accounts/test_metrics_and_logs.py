"""Metrics and logs of a server: counts, request ids in log records, and startup warnings."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dittybag import __version__
from dittybag.domain.errors import StorageBusy
from tests.accounts.accounts_world import World, auth_headers
from tests.contracts.http_server_process import BOTH, JSON, HttpServerProcess, ReceivedResponse, send_request
from tests.postgres_servers import PostgresServer

FAILING = "tests.accounts.failing_server"


def read_metrics(world: World, host: HttpServerProcess) -> dict[str, float]:
    """Return the metrics by name and labels."""
    admin = next(who for who in world.holders if who.scope == "admin")
    text = host.ask("GET", "/metrics", headers=auth_headers(admin.token)).body.decode()
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


@pytest.mark.parametrize(("name", "backend"), [("world", "sqlite"), ("rls_world", "postgresql")])
def test_metrics_count_all_tasks_and_name_the_server(
    request: pytest.FixtureRequest, name: str, backend: str
) -> None:
    world: World = request.getfixturevalue(name)
    host = world.host("all")
    before = read_metrics(world, host)
    for user in ("alice", "bob"):
        world.new_task(user)
    after = read_metrics(world, host)
    assert after['dittybag_stored{kind="tasks"}'] == before['dittybag_stored{kind="tasks"}'] + 2
    (info,) = (line for line in after if line.startswith("dittybag_info"))
    assert f'version="{__version__}"' in info
    assert f'server="{os.uname().nodename}:{host.process.pid}"' in info
    assert f'backend="{backend}"' in info


def calls(host: HttpServerProcess, task: int, request_id: str) -> list[ReceivedResponse]:
    """Return the responses to three equal requests on one connection."""
    params = {"name": "task_get", "arguments": {"task_id": task}}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {"Content-Type": JSON, "Accept": BOTH, "X-Request-Id": request_id}
    connection = host.connect()
    try:
        return [send_request(connection, "POST", "/mcp", body, headers) for _ in range(3)]
    finally:
        connection.close()


def start_failing(folder: Path, *options: str) -> HttpServerProcess:
    arguments = ("serve", "--http", "127.0.0.1:0", "--db", str(folder / "x.db"), *options)
    return HttpServerProcess(*arguments, module=FAILING, env={"DITTYBAG_HOME": str(folder)})


def test_an_error_in_a_request_is_logged_with_the_request_id(tmp_path: Path) -> None:
    with start_failing(tmp_path) as host:
        for response in calls(host, 1, "mine.1"):
            error = response.json()["error"]
            assert error == {"code": -32603, "message": "Internal error (request mine.1)"}
        calls(host, 2, "mine.2")
        responses = calls(host, 1, "not valid!")
        generated = [response.headers["x-request-id"] for response in responses]
        assert len(set(generated)) == len(generated)
        for response, request_id in zip(responses, generated, strict=True):
            assert response.json()["error"]["message"] == f"Internal error (request {request_id})"
        _, _, written = host.end()
    assert written.count("a handler failed (request mine.1)") == len(generated)
    assert written.count(f"task_get failed: nowhere: {StorageBusy('')} (request mine.2)") == len(generated)
    for request_id in generated:
        assert f"a handler failed (request {request_id})" in written


def test_with_an_access_log_every_log_line_is_json(tmp_path: Path) -> None:
    with start_failing(tmp_path, "--access-log") as host:
        calls(host, 1, "mine.1")
        calls(host, 2, "mine.2")
        _, _, written = host.end()
    lines = written.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("{"))
    decoded: list[dict[str, Any]] = [msgspec.json.decode(line) for line in lines[first:]]
    busy = f"task_get failed: nowhere: {StorageBusy('')}"
    for request_id, message in (("mine.1", "a handler failed"), ("mine.2", busy)):
        found = [line for line in decoded if line["request_id"] == request_id]
        # The order of the lines is not fixed.
        warnings = [line for line in found if "message" in line]
        assert [line["path"] for line in found if "path" in line] == ["/mcp"] * 3
        assert [warning["message"] for warning in warnings] == [message] * 3
        for warning in warnings:
            assert warning["level"] in ("warning", "error")
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", warning["at"])
            assert ("traceback" in warning) == (message != busy)
    assert any("a secret detail" in line.get("traceback", "") for line in decoded)


def test_a_server_with_tokens_warns_about_a_role_that_bypasses_row_level_security(
    server: PostgresServer, rls_world: World, tmp_path: Path
) -> None:
    server.sql("CREATE DATABASE superuser_db")
    home = {"DITTYBAG_HOME": str(tmp_path)}
    with HttpServerProcess("--db", server.url("superuser_db"), "--auth", "tokens", env=home) as host:
        host.stderr.wait_for("The role 'dittybag' bypasses PostgreSQL's row-level security")
        _, _, written = host.end()
    assert written.count("row-level security") == 1
    for database, auth in ((server.url("superuser_db"), "off"), (rls_world.database, "tokens")):
        with HttpServerProcess("--db", database, "--auth", auth, env=home) as host:
            assert "row-level" not in host.end()[2]
