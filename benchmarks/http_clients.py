"""The server's CPU time per request with real HTTP clients, in several situations.

Each client is a program in `benchmarks/clients/`. Source trees take turns, so that changes in machine load
affect all of them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import apsw
import msgspec
from msgspec import Struct
from tests.interop.environments import NODE, PYTHON_1, TYPESCRIPT_1, install, python

from benchmarks.http_client import HOST, HttpServer
from benchmarks.peers import PeerEnvironment
from benchmarks.report_output import print_progress

CLIENTS: Final = Path(__file__).parent / "clients"
CONNECTIONS: Final = (1, 16, 64)
AIOHTTP: Final = PeerEnvironment("aiohttp", "aiohttp", {"aiohttp": "3.14.3"}, "python")
#: A token may send 200 requests in a burst.
_CALLS_PER_TOKEN: Final = 180
_WARM_UP: Final = 300

_USERS: Final = """
import asyncio, json, sys
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite.sqlite_store import SqliteStore

async def main(path, count):
    workspace = Workspace(SqliteStore(path))
    accounts = workspace.accounts
    await accounts.add_user("load", actor="benchmark")
    await accounts.share("default", "load", "write", actor="benchmark")
    tokens = [await accounts.create_token("load", "write", actor="benchmark") for _ in range(count)]
    print(json.dumps([token.text for token in tokens]))
    await workspace.store.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


class Situation(Struct, frozen=True):
    """A client program, and how it sends its requests."""

    title: str
    command: Sequence[str]
    connections: int
    vary: bool = True
    session: bool = False
    #: With tokens and an access log, as our container runs.
    tokens: bool = False


def situations() -> list[Situation]:
    """Return the four situations with aiohttp, and every other client at 1, 16 and 64 connections."""
    for environment in (AIOHTTP, PYTHON_1, TYPESCRIPT_1):
        install(environment)
    aiohttp = (str(python(AIOHTTP)), "load_aiohttp.py")
    others = {
        "aiohttp": aiohttp,
        "httpx": (str(python(PYTHON_1)), "load_httpx.py"),
        "fetch": (str(NODE), "load_fetch.mjs"),
        "Python SDK": (str(python(PYTHON_1)), "load_python_sdk.py"),
        "TypeScript SDK": (str(NODE), "load_typescript_sdk.mjs"),
    }
    return [
        Situation("aiohttp, equal lengths", aiohttp, 16, vary=False),
        Situation("aiohttp, varying lengths", aiohttp, 16),
        Situation("aiohttp, in a session", aiohttp, 16, session=True),
        Situation("aiohttp, tokens and access log", aiohttp, 16, tokens=True),
        *(
            Situation(f"{name}, {connections} at a time", command, connections)
            for name, command in others.items()
            for connections in CONNECTIONS
        ),
    ]


def measure_clients(
    database: Path, trees: Mapping[str, Path], *, rounds: int, count: int, only: str
) -> dict[str, dict[str, float]]:
    """Return the microseconds of CPU per request, by situation and source tree."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    ids = [row[0] for row in connection.execute("SELECT id FROM prompts ORDER BY number")]
    connection.close()
    command = [sys.executable, "-c", _USERS, str(database), str((count + _WARM_UP) // _CALLS_PER_TOKEN + 1)]
    tokens = msgspec.json.decode(subprocess.run(command, capture_output=True, check=True).stdout)
    found: dict[str, dict[str, list[float]]] = {}
    chosen = [each for each in situations() if only in each.title]
    for number in range(rounds):
        for situation in chosen:
            print_progress(f"Round {number + 1} of {rounds}: {situation.title} ...")
            for name, tree in trees.items():
                cost = _measure(situation, tree, database, ids=ids, tokens=tokens, count=count)
                found.setdefault(situation.title, {}).setdefault(name, []).append(cost)
    return {
        title: {name: median(costs) for name, costs in by_tree.items()} for title, by_tree in found.items()
    }


def _measure(
    situation: Situation, tree: Path, database: Path, *, ids: list[str], tokens: list[str], count: int
) -> float:
    options = ("--auth", "tokens", "--access-log") if situation.tokens else ()
    serve = (sys.executable, "-m", "dittybag", "serve", "--db", str(database), *options, "--http")
    variables = {"DITTYBAG_HOME": str(database.parent), "PYTHONPATH": str(tree / "src")}
    with HttpServer(lambda port: (*serve, f"{HOST}:{port}"), variables) as server:
        plan: dict[str, Any] = {
            "url": f"http://{HOST}:{server.port}/mcp",
            "ids": ids,
            "connections": situation.connections,
            "vary": situation.vary,
            "session": situation.session,
            "tokens": tokens if situation.tokens else [],
        }
        program, script = situation.command
        for calls in (_WARM_UP, count):
            before = server.processor_seconds() or 0.0
            text = msgspec.json.encode({**plan, "count": calls}).decode()
            command = [program, str(CLIENTS / script), text, str(TYPESCRIPT_1.home)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return ((server.processor_seconds() or 0.0) - before) / count * 1e6


def client_table(costs: Mapping[str, Mapping[str, float]]) -> str:
    """Return the costs as a Markdown table."""
    names = list(next(iter(costs.values())))
    ratio = [" ratio |"] if len(names) == 2 else []
    lines = ["| server CPU per request | " + " | ".join(names) + " |" + "".join(ratio)]
    lines.append("|---|" + "---|" * (len(names) + len(ratio)))
    for title, by_tree in costs.items():
        values = list(by_tree.values())
        cells = [f"{value:.0f} µs" for value in values]
        if ratio:
            cells.append(f"{values[1] / values[0]:.2f}")
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
