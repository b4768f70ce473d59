"""A task whose claim is gone is to do again; a task that a person moved to Doing stays there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from dittybag.storage.postgres.postgres_connections import connect, parse_address
from tests.cli.cli_runner import data, dittybag
from tests.postgres_servers import PostgresServer
from tests.stdio_server_process import StdioServerProcess


def finish_and_undo(home: Path) -> Path:
    for task in ("1", "2"):
        dittybag(home, "task", "done", task)
        dittybag(home, "undo", "--last", "1", "--yes")
    return home / "default.db"


def delete_and_undo(home: Path) -> Path:
    for task in ("1", "2"):
        dittybag(home, "task", "delete", task)
        dittybag(home, "undo", "--last", "1", "--yes")
    return home / "default.db"


def copy(home: Path) -> Path:
    dittybag(home, "copy", "--from", str(home / "default.db"), "--to", str(home / "copy.db"))
    return home / "copy.db"


def export_file(home: Path) -> Path:
    return export_and_import(home, "all.json")


def export_folder(home: Path) -> Path:
    return export_and_import(home, "all")


def export_and_import(home: Path, name: str) -> Path:
    dittybag(home, "export", str(home / name))
    dittybag(home, "import", str(home / name), "--db", str(home / "new.db"))
    return home / "new.db"


@pytest.mark.parametrize("lose", [finish_and_undo, delete_and_undo, copy, export_file, export_folder])
def test_a_task_whose_claim_is_gone_is_to_do_again(tmp_path: Path, lose: Callable[[Path], Path]) -> None:
    dittybag(tmp_path, "task", "add", "Claimed")
    dittybag(tmp_path, "task", "add", "Moved by a person", "--assignee", "ann")
    assert data(dittybag(tmp_path, "task", "next", "--json", "--as", "agent"))["task"]["id"] == 1
    dittybag(tmp_path, "task", "edit", "2", "--status", "doing", variables={"DITTYBAG_ACTOR": "ann"})
    begun = ("task", "add", "Begun by a person", "--assignee", "ben", "--status", "doing")
    dittybag(tmp_path, *begun, variables={"DITTYBAG_ACTOR": "ben"})
    at = str(lose(tmp_path))
    states = {
        task["id"]: (task["status"], task["assignee"])
        for task in data(dittybag(tmp_path, "task", "list", "--json", "--db", at))["tasks"]
    }
    assert states == {1: ("todo", None), 2: ("doing", "ann"), 3: ("doing", "ben")}
    given = data(dittybag(tmp_path, "task", "next", "--json", "--as", "other", "--db", at))
    assert given["task"]["id"] == 1


@pytest.mark.parametrize("by", ["an agent", "the shell"])
def test_doctor_names_it_on_postgresql(tmp_path: Path, shared_postgres: PostgresServer, by: str) -> None:
    url = shared_postgres.url(schema=f"lost_claims_{len(by)}")
    at = ("--db", url)
    dittybag(tmp_path, "task", "add", "Claimed", *at)
    dittybag(tmp_path, "task", "add", "Moved by a person", "--assignee", "ann", *at)
    if by == "an agent":
        with StdioServerProcess("dittybag", "serve", *at, env={"DITTYBAG_HOME": str(tmp_path)}) as server:
            server.handshake()
            server.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "task_next"}})
    else:
        dittybag(tmp_path, "task", "next", *at)
    dittybag(tmp_path, "task", "edit", "2", "--status", "doing", *at, variables={"DITTYBAG_ACTOR": "ann"})
    assert doctor_warnings(tmp_path, url) == []
    asyncio.run(delete_claims(url))
    (warning,) = doctor_warnings(tmp_path, url)
    assert warning.endswith("whose claims are gone: 1")


def doctor_warnings(home: Path, url: str) -> list[str]:
    found = data(dittybag(home, "doctor", "--db", url, "--json"))["findings"]
    return [finding["message"] for finding in found if finding["level"] == "warning"]


async def delete_claims(url: str) -> None:
    connection = await connect(parse_address(url), writable=True)
    await connection.execute("DELETE FROM claims")
    await connection.close()
