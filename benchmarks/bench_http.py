"""Dittybag over HTTP side by side with the official Python SDK: `python -m benchmarks.bench_http`.

The product reads prompts from a workspace; the SDK and our endpoint answer a trivial tool, the latter on
several HTTP servers. Rounds alternate between all of them, so that a change of the machine's pace meets all.
Every answer is checked, and medians of the rounds are shown.
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

from benchmarks.bench_engines import CACHE, SERVERS, EngineEnvironment
from benchmarks.http_client import HANDSHAKE, HOST, STATELESS, HttpServer, Question, call, request
from benchmarks.http_report import CONNECTIONS, HALF_SENT, Report, Series, bars, tables
from benchmarks.report_output import machine, tell
from benchmarks.sample_data import copied, prepare
from benchmarks.stdio_client import ServerFailed

PROMPTS: Final = 1000
#: Different calls of the trivial tool, made in turn.
ECHOES: Final = 1000

# The engine needs msgspec; the product's own environment has nothing of this server.
GRANIAN: Final = EngineEnvironment(
    "granian", "granian", {"granian[uvloop]": "2.8.7", "msgspec": "0.22.0"}, "python"
)

#: The command for a port.
Command = Callable[[int], Sequence[str]]


class Contestant(Struct, frozen=True):
    """A server, and what is asked of it."""

    name: str
    command: Command
    #: By title.
    questions: Mapping[str, Sequence[Question]]
    variables: Mapping[str, str] = {}


class Effort(Struct, frozen=True):
    """How much is measured."""

    rounds: int
    #: How long each load takes.
    seconds: float
    #: The load before anything counts.
    warm_up: float


FULL: Final = Effort(rounds=5, seconds=1.5, warm_up=0.5)
QUICK: Final = Effort(rounds=2, seconds=0.5, warm_up=0.3)

#: Connections that never come to the point are watched for so long.
WATCHED_SECONDS: Final = 25.0
#: A byte now and then, for a head that never ends.
DRIP_SECONDS: Final = 0.5


def echoes(version: str, count: int = ECHOES) -> list[Question]:
    """Calls of a tool that answers its argument."""

    def answers(text: str) -> Callable[[Any], bool]:
        return lambda result: [block["text"] for block in result["content"]] == [text]

    return [
        call(number, version, "echo", {"text": f"message {number}"}, answers(f"message {number}"))
        for number in range(count)
    ]


def reads(version: str, database: Path) -> list[Question]:
    """Calls that read each prompt of a workspace."""

    def answers(id: str, title: str, content: str) -> Callable[[Any], bool]:
        def is_right(result: Any) -> bool:
            found = result["structuredContent"]
            told = msgspec.json.decode(result["content"][0]["text"])
            return told == found and (found["id"], found["title"], found["content"]) == (id, title, content)

        return is_right

    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = connection.execute("SELECT id, title, content FROM prompts ORDER BY number").fetchall()
    finally:
        connection.close()
    return [
        call(number, version, "get_prompt", {"id": key}, answers(str(key), str(title), str(content)))
        for number, (key, title, content) in enumerate(rows)
    ]


def contestants(database: Path) -> list[Contestant]:
    """All servers, in the order of their turns."""
    for environment in (PYTHON_2, GRANIAN):
        install(environment)
    home = {"DITTYBAG_HOME": str(database.parent)}
    source = {"PYTHONPATH": str(ROOT / "src")}

    def dittybag(port: int) -> Sequence[str]:
        serve = ("-m", "dittybag", "serve", "--db", str(database), "--http", f"{HOST}:{port}")
        return (sys.executable, *serve)

    def script(interpreter: Path | str, name: str, *arguments: str) -> Command:
        return lambda port: (str(interpreter), str(SERVERS / name), str(port), *arguments)

    def both(title: str, ask: Callable[[str], list[Question]]) -> dict[str, list[Question]]:
        return {f"{title}, {version}": ask(version) for version in (STATELESS, HANDSHAKE)}

    stateless = echoes(STATELESS)
    return [
        Contestant(
            "dittybag", dittybag, both("dittybag serve, get_prompt", lambda era: reads(era, database)), home
        ),
        Contestant(
            "sdk", script(python(PYTHON_2), "python_sdk_http.py", "default"), both("Python SDK, echo", echoes)
        ),
        Contestant(
            "sdk-tuned",
            script(python(PYTHON_2), "python_sdk_http.py", "tuned"),
            both("Python SDK tuned, echo", echoes),
        ),
        Contestant(
            "ours", script(sys.executable, "ours_http.py", "httptools"), both("our endpoint, echo", echoes)
        ),
        Contestant("h11", script(sys.executable, "ours_http.py", "h11"), {"h11 and asyncio": stateless}),
        Contestant(
            "granian", script(python(GRANIAN), "ours_http.py", "granian"), {"granian": stateless}, source
        ),
        Contestant("floor", script(sys.executable, "floor_http.py"), {"floor": echoes(STATELESS, 1)}),
    ]


def measure(database: Path, effort: Effort) -> Report:
    """Everything."""
    before = os.getloadavg()[0]
    # Progress of any kind stays out of what may be JSON.
    with contextlib.redirect_stdout(sys.stderr):
        servers = contestants(database)
    series = [Series(title, each.name) for each in servers for title in each.questions]
    memory: dict[str, list[int]] = {each.name: [] for each in servers}
    for number in range(effort.rounds):
        for each in servers:
            tell(f"Load {number + 1} of {effort.rounds}: {each.name} ...")
            chosen = {one.title: one for one in series if one.server == each.name}
            with HttpServer(each.command, each.variables) as server:
                _measure_load(server, each, chosen, effort)
                memory[each.name].append(server.memory())
    tell("Connections that never come to the point ...")
    half_sent = measure_half_sent([each for each in servers if each.name in ("ours", "h11", "granian")])
    return Report(series, memory, half_sent, before, os.getloadavg()[0])


def _measure_load(
    server: HttpServer, contestant: Contestant, series: Mapping[str, Series], effort: Effort
) -> None:
    for questions in contestant.questions.values():
        server.ask(questions, 16, effort.warm_up)
    for connections in CONNECTIONS:
        for title, questions in contestant.questions.items():
            series[title].loads[connections].append(server.ask(questions, connections, effort.seconds))


def measure_half_sent(servers: Sequence[Contestant]) -> dict[str, dict[str, float | None]]:
    """After how many seconds each server closes connections on which no whole request comes."""
    head = {"Host": HOST, "Content-Type": "application/json"}
    begun = request(head, b"").partition(b"\r\nContent-Length")[0] + b"\r\nX-Slow: "
    bodiless, half = request(head, b"", 100), request(head, b'{"jsonrpc":', 100)
    sent = dict(zip(HALF_SENT, (b"", begun, begun, bodiless, half), strict=True))
    with contextlib.ExitStack() as stack:
        started = {
            each.name: stack.enter_context(HttpServer(each.command, each.variables)) for each in servers
        }
        opened: dict[socket.socket, tuple[str, str]] = {}
        for name, server in started.items():
            for kind, data in sent.items():
                connection = stack.enter_context(server.connected())
                connection.sendall(data)
                opened[connection] = name, kind
        return _closed(opened)


def _closed(opened: Mapping[socket.socket, tuple[str, str]]) -> dict[str, dict[str, float | None]]:
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
            if kind == "a head, byte by byte":
                # The server may have hung up just now: the next turn sees it.
                with contextlib.suppress(ConnectionError):
                    connection.send(b"x")
    return found


def _is_closed(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1 << 16)
    except ConnectionError:
        return True


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_http", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter measurements")
    parser.add_argument("--json", action="store_true", help="all samples as JSON")
    options = parser.parse_args()
    try:
        workspace = prepare(PROMPTS).workspace
        CACHE.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(dir=CACHE) as folder,
            copied(workspace, Path(folder), "http") as database,
        ):
            report = measure(database, QUICK if options.quick else FULL)
    except (ServerFailed, SetupFailed) as error:
        raise SystemExit(f"error: {error}") from None
    if options.json:
        shown = {"machine": machine(), "report": report, "bars": bars(report)}
        print(msgspec.json.format(msgspec.json.encode(shown)).decode())
    else:
        print(tables(report, machine()))


if __name__ == "__main__":
    main()
