"""Writes that are cancelled, or cut off by the end of the input, are reported truthfully."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import msgspec
import pytest

from dittybag.storage.postgres.postgres_connections import lock_keys
from tests import postgres_servers
from tests.programs import STRACE
from tests.stdio_server_process import ROOT, StdioServerProcess

#: Runs a program whose writes to the disk take longer than the server waits for running requests.
SLOW_DISK = (
    *("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync,fsync"),
    *("-e", "inject=fdatasync,fsync:delay_enter=1500000"),
)
UNKNOWN = "it is not known whether this change was made"


def frame(number: int | str, method: str, **params: Any) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def create_prompt(name: str) -> bytes:
    return frame(name, "tools/call", name="create_prompt", arguments={"name": name, "content": "Words"})


def cancel(request_id: str) -> bytes:
    params = {"requestId": request_id}
    return msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


Lock = Callable[[], Any]


@pytest.fixture(params=["sqlite", "postgres"])
async def locked_database(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[str, Lock, Lock]]:
    """The address of a database, and functions that take and release its write lock."""
    async with AsyncExitStack() as stack:
        if request.param == "sqlite":
            path = str(tmp_path / "dittybag.db")

            async def lock_file() -> None:
                holder = stack.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
                holder.execute("BEGIN IMMEDIATE")
                stack.callback(holder.close)
                held.append(holder)

            held: list[sqlite3.Connection] = []

            async def release_file() -> None:
                held.pop().execute("ROLLBACK")

            yield path, lock_file, release_file
        else:
            server: postgres_servers.PostgresServer = request.getfixturevalue("postgres")
            schema = "interrupted_writes"
            holder = await asyncpg.connect(server.url())
            stack.push_async_callback(holder.close)

            async def lock_schema() -> None:
                await holder.execute(f"SELECT pg_advisory_lock({lock_keys(schema)})")

            async def release_schema() -> None:
                await holder.execute(f"SELECT pg_advisory_unlock({lock_keys(schema)})")

            yield server.socket_url(schema=schema), lock_schema, release_schema


async def test_a_cancelled_write_that_has_not_begun_is_not_carried_out(
    locked_database: tuple[str, Lock, Lock],
) -> None:
    database, lock, release = locked_database
    with StdioServerProcess("dittybag", "serve", "--profile", "mcpkg", "--db", database) as wire:
        wire.handshake()
        await lock()
        # The write that waits for a read has not even started.
        wire.send(create_prompt("kept"), create_prompt("cancelled"))
        wire.send(frame("list", "prompts/list"), create_prompt("waiting"))
        wire.send(cancel("cancelled"), cancel("waiting"))
        # A cancellation has taken effect when the server reads again after it has responded.
        for number in range(3):
            wire.ask({"jsonrpc": "2.0", "id": number, "method": "ping"})
        await release()
        assert wire.message()["id"] == "kept"
        assert wire.message()["id"] == "list"
        listed = wire.ask({"jsonrpc": "2.0", "id": 1, "method": "prompts/list"})["result"]["prompts"]
        assert [prompt["name"] for prompt in listed] == ["kept"]


def test_at_the_end_of_input_no_write_is_stored_that_was_answered_as_not_carried_out(tmp_path: Path) -> None:
    STRACE.require()
    path = tmp_path / "dittybag.db"
    names = [f"p{number}" for number in range(300)]
    with StdioServerProcess("dittybag", "serve", "--profile", "mcpkg", "--db", str(path)) as wire:
        wire.handshake()
    server = subprocess.Popen(
        [*SLOW_DISK, sys.executable, "-m", "dittybag", "serve", "--profile", "mcpkg", "--db", str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    output, errors = server.communicate(b"".join(create_prompt(name) + b"\n" for name in names), timeout=40)
    answers = {answer["id"]: answer for answer in map(msgspec.json.decode, output.splitlines())}
    assert sorted(answers) == sorted(names), errors
    with closing(sqlite3.connect(path)) as reader:
        stored = {name for (name,) in reader.execute("SELECT name FROM prompts")}
    messages = {name: answer["error"]["message"] for name, answer in answers.items() if "error" in answer}
    refused = {name for name, message in messages.items() if UNKNOWN not in message}
    unknown = messages.keys() - refused
    assert unknown
    assert all(messages[name] == "The server is shutting down" for name in refused)
    assert not refused & stored
    assert names[0] in stored
    assert stored >= answers.keys() - messages.keys()
