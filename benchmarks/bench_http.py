"""Compares Dittybag over HTTP with the official Python SDK: `python -m benchmarks.bench_http`.

`dittybag serve` reads prompts from a workspace. The SDK and Dittybag's endpoint run a trivial tool, the
endpoint on several HTTP servers. Rounds alternate between all of them, so that changes in machine load affect
all of them. Every response is checked. Results are medians of the rounds.

`--clients` measures `dittybag serve` with real HTTP and MCP clients instead; `--baseline` compares it with
another source tree.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec
from msgspec import Struct
from tests.interop.environments import PYTHON_2, ROOT, SetupFailed, install, python

from benchmarks.http_client import (
    HANDSHAKE,
    HOST,
    STATELESS,
    HttpServer,
    PreparedRequest,
    call,
    encode_request,
)
from benchmarks.http_clients import client_table, measure_clients
from benchmarks.http_report import (
    CONNECTIONS,
    HALF_SENT_TIMEOUTS,
    HttpReport,
    HttpSeries,
    check_targets,
    tables,
)
from benchmarks.peers import CACHE, SERVERS, PeerEnvironment
from benchmarks.report_output import describe_machine, print_progress
from benchmarks.sample_data import build_sample_files, temporary_copy
from benchmarks.stdio_client import ServerFailed

PROMPTS: Final = 1000
#: The number of different calls of the trivial tool.
ECHOES: Final = 1000

# A separate environment for granian, with msgspec for the engine.
GRANIAN: Final = PeerEnvironment(
    "granian", "granian", {"granian[uvloop]": "2.8.7", "msgspec": "0.22.0"}, "python"
)

#: Returns the command for a port.
Command = Callable[[int], Sequence[str]]


class Candidate(Struct, frozen=True):
    """A server and its requests."""

    name: str
    command: Command
    #: The requests, by title.
    requests: Mapping[str, Sequence[PreparedRequest]]
    variables: Mapping[str, str] = {}


class HttpSampling(Struct, frozen=True):
    """The number and length of the measurements."""

    rounds: int
    #: The length of each load.
    seconds: float
    #: The length of the warm-up.
    warm_up: float


FULL: Final = HttpSampling(rounds=5, seconds=1.5, warm_up=0.5)
QUICK: Final = HttpSampling(rounds=2, seconds=0.5, warm_up=0.3)

#: How long connections without a complete request are watched.
WATCHED_SECONDS: Final = 25.0
#: The interval between bytes of headers that never end.
DRIP_SECONDS: Final = 0.5


def echo_requests(version: str, count: int = ECHOES) -> list[PreparedRequest]:
    """Return calls of a tool that returns its argument."""

    def expects(text: str) -> Callable[[Any], bool]:
        return lambda result: [block["text"] for block in result["content"]] == [text]

    return [
        call(number, version, "echo", {"text": f"message {number}"}, expects(f"message {number}"))
        for number in range(count)
    ]


def read_requests(version: str, database: Path) -> list[PreparedRequest]:
    """Return calls that read each prompt of a workspace."""

    def expects(id: str, title: str, content: str) -> Callable[[Any], bool]:
        def is_valid(result: Any) -> bool:
            found = result["structuredContent"]
            text = msgspec.json.decode(result["content"][0]["text"])
            return text == found and (found["id"], found["title"], found["content"]) == (id, title, content)

        return is_valid

    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = connection.execute("SELECT id, title, content FROM prompts ORDER BY number").fetchall()
    finally:
        connection.close()
    return [
        call(number, version, "get_prompt", {"id": key}, expects(str(key), str(title), str(content)))
        for number, (key, title, content) in enumerate(rows)
    ]


def candidates(database: Path) -> list[Candidate]:
    """Return all servers, in the order of their turns."""
    for environment in (PYTHON_2, GRANIAN):
        install(environment)
    home = {"DITTYBAG_HOME": str(database.parent)}
    source = {"PYTHONPATH": str(ROOT / "src")}

    def dittybag(port: int) -> Sequence[str]:
        serve = ("-m", "dittybag", "serve", "--db", str(database), "--http", f"{HOST}:{port}")
        return (sys.executable, *serve)

    def script(interpreter: Path | str, name: str, *arguments: str) -> Command:
        return lambda port: (str(interpreter), str(SERVERS / name), str(port), *arguments)

    def both(title: str, prepare: Callable[[str], list[PreparedRequest]]) -> dict[str, list[PreparedRequest]]:
        return {f"{title}, {version}": prepare(version) for version in (STATELESS, HANDSHAKE)}

    stateless = echo_requests(STATELESS)
    return [
        Candidate(
            "dittybag",
            dittybag,
            both("dittybag serve, get_prompt", lambda era: read_requests(era, database)),
            home,
        ),
        Candidate(
            "sdk",
            script(python(PYTHON_2), "python_sdk_http.py", "default"),
            both("Python SDK, echo", echo_requests),
        ),
        Candidate(
            "sdk-tuned",
            script(python(PYTHON_2), "python_sdk_http.py", "tuned"),
            both("Python SDK tuned, echo", echo_requests),
        ),
        Candidate(
            "endpoint",
            script(sys.executable, "dittybag_http.py", "httptools"),
            both("Dittybag endpoint, echo", echo_requests),
        ),
        Candidate("h11", script(sys.executable, "dittybag_http.py", "h11"), {"h11 and asyncio": stateless}),
        Candidate(
            "granian", script(python(GRANIAN), "dittybag_http.py", "granian"), {"granian": stateless}, source
        ),
        Candidate(
            "baseline", script(sys.executable, "baseline_http.py"), {"baseline": echo_requests(STATELESS, 1)}
        ),
    ]


def measure(database: Path, sampling: HttpSampling) -> HttpReport:
    """Run all measurements and return the report."""
    before = os.getloadavg()[0]
    # Keep progress messages out of the JSON output.
    with contextlib.redirect_stdout(sys.stderr):
        servers = candidates(database)
    series = [HttpSeries(title, each.name) for each in servers for title in each.requests]
    memory: dict[str, list[int]] = {each.name: [] for each in servers}
    for number in range(sampling.rounds):
        for each in servers:
            print_progress(f"Load {number + 1} of {sampling.rounds}: {each.name} ...")
            chosen = {one.title: one for one in series if one.server == each.name}
            with HttpServer(each.command, each.variables) as server:
                _measure_load(server, each, chosen, sampling)
                memory[each.name].append(server.memory())
    print_progress("Connections without a complete request ...")
    half_sent = measure_half_sent([each for each in servers if each.name in ("endpoint", "h11", "granian")])
    return HttpReport(series, memory, half_sent, before, os.getloadavg()[0])


def _measure_load(
    server: HttpServer, candidate: Candidate, series: Mapping[str, HttpSeries], sampling: HttpSampling
) -> None:
    for requests in candidate.requests.values():
        server.run_load(requests, 16, sampling.warm_up)
    for connections in CONNECTIONS:
        for title, requests in candidate.requests.items():
            series[title].loads[connections].append(server.run_load(requests, connections, sampling.seconds))


def measure_half_sent(servers: Sequence[Candidate]) -> dict[str, dict[str, float | None]]:
    """Return after how many seconds each server closes connections without a complete request."""
    head = {"Host": HOST, "Content-Type": "application/json"}
    partial_headers = encode_request(head, b"").partition(b"\r\nContent-Length")[0] + b"\r\nX-Slow: "
    bodiless, half = encode_request(head, b"", 100), encode_request(head, b'{"jsonrpc":', 100)
    sent = dict(zip(HALF_SENT_TIMEOUTS, (b"", partial_headers, partial_headers, bodiless, half), strict=True))
    with contextlib.ExitStack() as stack:
        started = {
            each.name: stack.enter_context(HttpServer(each.command, each.variables)) for each in servers
        }
        opened: dict[socket.socket, tuple[str, str]] = {}
        for name, server in started.items():
            for kind, data in sent.items():
                connection = stack.enter_context(server.connect())
                connection.sendall(data)
                opened[connection] = name, kind
        return _wait_for_closing(opened)


def _wait_for_closing(opened: Mapping[socket.socket, tuple[str, str]]) -> dict[str, dict[str, float | None]]:
    found: dict[str, dict[str, float | None]] = {}
    for name, kind in opened.values():
        found.setdefault(name, {})[kind] = None
    left, start = dict(opened), time.monotonic()
    while left and time.monotonic() - start < WATCHED_SECONDS:
        ready, _, _ = select.select(list(left), [], [], DRIP_SECONDS)
        for connection in ready:
            if _is_closed(connection):
                name, kind = left.pop(connection)
                found[name][kind] = time.monotonic() - start
        for connection, (_, kind) in left.items():
            if kind == "headers, byte by byte":
                # The server may have just closed it; the next iteration notices.
                with contextlib.suppress(ConnectionError):
                    connection.send(b"x")
    return found


def _is_closed(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1 << 16)
    except ConnectionError:
        return True


def _print_clients(database: Path, options: argparse.Namespace) -> None:
    """Print the server's CPU time per request with real clients."""
    baseline = {} if options.baseline is None else {"before": options.baseline}
    rounds, count = (1, 1000) if options.quick else (3, 4000)
    costs = measure_clients(
        database, {**baseline, "now": ROOT}, rounds=rounds, count=count, only=options.only
    )
    print(client_table(costs))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_http", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter measurements")
    parser.add_argument("--json", action="store_true", help="print all samples as JSON")
    parser.add_argument("--clients", action="store_true", help="measure the server with real clients instead")
    parser.add_argument("--only", default="", help="with --clients: the situations whose title contains this")
    parser.add_argument("--baseline", type=Path, help="with --clients: another source tree to compare with")
    options = parser.parse_args()
    try:
        workspace = build_sample_files(PROMPTS).workspace
        CACHE.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(dir=CACHE) as folder,
            temporary_copy(workspace, Path(folder), "http") as database,
        ):
            if options.clients:
                _print_clients(database, options)
                return
            report = measure(database, QUICK if options.quick else FULL)
    except (ServerFailed, SetupFailed) as error:
        raise SystemExit(f"error: {error}") from None
    if options.json:
        shown = {"machine": describe_machine(), "report": report, "targets": check_targets(report)}
        print(msgspec.json.format(msgspec.json.encode(shown)).decode())
    else:
        print(tables(report, describe_machine()))


if __name__ == "__main__":
    main()
