"""Compares Dittybag with other MCP servers over HTTP, with real clients: `python -m benchmarks.bench_http`.

`dittybag serve --http`, as installed, reads the prompts of a workspace; the other servers return an argument.
All requests have bodies of different lengths. They are sent without a session, in a session, and to a server
with tokens and an access log, as the container ships it. Servers take turns in every round.
"""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from tests.interop.environments import PYTHON_2, TYPESCRIPT_1, TYPESCRIPT_2, SetupFailed

from benchmarks.client_process import ClientProcess, ClientProgram, ToolCalls
from benchmarks.comparison_options import Sampling, run_comparison
from benchmarks.http_client import HOST, HttpServer
from benchmarks.http_report import HttpSamples, http_tables
from benchmarks.peers import AIOHTTP, CACHE, HTTP_PEERS, Peer
from benchmarks.product import Product, Workspace, echoes, fill_workspace
from benchmarks.report_output import ReportTable, print_progress

STATELESS: Final = "without a session"
SESSION: Final = "in a session"
SHIPPED: Final = "tokens and access log"

#: A token may send 200 requests in a burst, and 50 a second.
CALLS_PER_TOKEN: Final = 150
TOKENS: Final = 60

#: Creates users with tokens, much faster than a command for each.
_TOKENS: Final = """
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


class HttpClient(Struct, frozen=True):
    """A client, the situations in which it sends requests, and how many at a time."""

    program: ClientProgram
    situations: tuple[str, ...]
    connections: tuple[int, ...] = (1, 16)
    #: What tables call the situation; `None` for its own name.
    situation: str | None = None


CLIENTS: Final = (
    HttpClient(ClientProgram("aiohttp 3.14.3", "aiohttp_client.py", AIOHTTP), (STATELESS, SESSION, SHIPPED)),
    HttpClient(ClientProgram("Node's fetch", "fetch.mjs", TYPESCRIPT_1), (STATELESS, SESSION)),
    *(
        # They negotiate the protocol revision with the server, which decides whether there is a session.
        HttpClient(program, (SESSION,), situation="as the client connects")
        for program in (
            ClientProgram("Python SDK 2.3.0", "python_sdk.py", PYTHON_2),
            ClientProgram("TypeScript SDK 1.32.2", "typescript_1.mjs", TYPESCRIPT_1),
            ClientProgram("TypeScript client 2.4.0", "typescript_2.mjs", TYPESCRIPT_2),
        )
    ),
)


FULL: Final = Sampling(rounds=4, seconds=0.4)
QUICK: Final = Sampling(rounds=2, seconds=0.2)


class RunningServer(Struct, frozen=True):
    """A server process, and the requests that it gets in one situation."""

    title: str
    situation: str
    process: HttpServer
    calls: ToolCalls
    tokens: list[str] = []

    @property
    def plan(self) -> dict[str, Any]:
        url = f"http://{HOST}:{self.process.port}/mcp"
        return {"url": url, "session": self.situation == SESSION, "tokens": self.tokens}

    @property
    def most(self) -> int | None:
        """The number of requests that the tokens allow in one load."""
        return len(self.tokens) * CALLS_PER_TOKEN or None


def _create_tokens(workspace: Workspace, count: int) -> list[str]:
    command = [workspace.product.python, "-c", _TOKENS, workspace.database, str(count)]
    result = subprocess.run(command, check=False, capture_output=True)
    if result.returncode:
        raise SetupFailed(result.stderr[-1000:].decode(errors="replace"))
    return msgspec.json.decode(result.stdout, type=list[str])


def _start_product(
    stack: contextlib.ExitStack, workspace: Workspace, sampling: Sampling
) -> Iterator[RunningServer]:
    """Start a server for requests with and without a session, and one as the container ships it."""
    title, calls = workspace.product.title, workspace.reads("get_prompt", vary=True)
    serve = [workspace.product.command, "serve", "--db", workspace.database]

    def start(*options: str) -> HttpServer:
        return stack.enter_context(
            HttpServer(lambda port: [*serve, "--http", f"{HOST}:{port}", *options], workspace.variables)
        )

    plain = start()
    yield RunningServer(title, STATELESS, plain, calls)
    yield RunningServer(title, SESSION, plain, calls)
    tokens = _create_tokens(workspace, TOKENS)
    yield RunningServer(title, SHIPPED, start("--auth", "tokens", "--access-log"), calls, tokens)


def _start_servers(
    stack: contextlib.ExitStack, found: Sequence[Product], folder: Path, sampling: Sampling
) -> list[RunningServer]:
    servers: list[RunningServer] = []
    for place, product in enumerate(found):
        workspace = fill_workspace(product, folder / str(place), sampling.prompts)
        servers += _start_product(stack, workspace, sampling)
    for peer in HTTP_PEERS:
        servers += _start_peer(stack, peer, echoes(sampling.prompts, vary=True))
    return servers


def _start_peer(stack: contextlib.ExitStack, peer: Peer, calls: ToolCalls) -> Iterator[RunningServer]:
    """Start a server without sessions, one with them, and if it can, one with an access log."""
    command = peer.command()

    def start(mode: str) -> HttpServer:
        return stack.enter_context(HttpServer(lambda port: [*command, str(port), mode]))

    plain = start("stateless")
    yield RunningServer(peer.title, STATELESS, plain, calls)
    yield RunningServer(peer.title, SESSION, start("session"), calls)
    if peer.logs:
        yield RunningServer(peer.title, SHIPPED, start("logged"), calls)
        yield RunningServer(f"{peer.title}, without the log", SHIPPED, plain, calls)


def measure(found: Sequence[Product], sampling: Sampling, only: str) -> list[ReportTable]:
    """Measure every server in every situation, with every client whose title contains a text."""
    CACHE.mkdir(parents=True, exist_ok=True)
    samples: dict[tuple[str, str, str, int], HttpSamples] = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=CACHE)))
        with contextlib.redirect_stdout(sys.stderr):
            chosen = [
                (client, stack.enter_context(ClientProcess(client.program.command())))
                for client in CLIENTS
                if only in client.program.title
            ]
            servers = _start_servers(stack, found, folder, sampling)
        for number in range(sampling.rounds):
            for client, process in chosen:
                print_progress(f"Round {number + 1} of {sampling.rounds}: {client.program.title} ...")
                fitting = [server for server in servers if server.situation in client.situations]
                for connections, server in itertools.product(client.connections, fitting):
                    situation = client.situation or server.situation
                    key = client.program.title, situation, server.title, connections
                    taken = samples.setdefault(key, HttpSamples(*key))
                    _measure_server(process, server, sampling, taken)
    return http_tables(list(samples.values()))


def _measure_server(
    client: ClientProcess, server: RunningServer, sampling: Sampling, samples: HttpSamples
) -> None:
    client.open(server.plan, server.calls)
    pid, count = server.process.pid, samples.connections
    client.load(sampling.seconds / 4, at_a_time=count, most=server.most, server=pid)
    samples.loads.append(client.load(sampling.seconds, at_a_time=count, most=server.most, server=pid))
    samples.memory.append(server.process.memory())
    client.close()


if __name__ == "__main__":
    run_comparison("bench_http", __doc__, (FULL, QUICK), measure)
