"""Our engine side by side with other MCP engines, on stdio: `python -m benchmarks.bench_engines`.

The same trivial server, with one tool that answers its argument, is run on each. Spawns and rounds alternate
between the engines, so that a change of the machine's pace meets all of them. Medians are shown.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from tests.interop.environments import NODE, ROOT, Environment, SetupFailed, install, python

from benchmarks.engine_report import Figures, bars, medians, tables
from benchmarks.report_output import machine, tell
from benchmarks.stdio_client import Calls, Connection, ServerFailed

SERVERS: Final = Path(__file__).parent / "servers"
CACHE: Final = ROOT / ".cache" / "benchmarks"


class EngineEnvironment(Environment, frozen=True):
    """Another engine, apart from the clients that the tests use."""

    @property
    def home(self) -> Path:
        return CACHE / self.name


#: The other engines, exactly these.
PYTHON_SDK: Final = EngineEnvironment("python-sdk", "the MCP Python SDK", {"mcp": "2.3.0"}, "python")
# 4.1.3 and 4.1.4 require certifi>=2026.10.19, which does not install everywhere.
FASTMCP: Final = EngineEnvironment("fastmcp", "FastMCP", {"fastmcp": "4.1.2"}, "python")
TYPESCRIPT_1: Final = EngineEnvironment(
    "typescript-1", "the MCP TypeScript SDK 1", {"@modelcontextprotocol/sdk": "1.32.2"}, "node"
)
TYPESCRIPT_2: Final = EngineEnvironment(
    "typescript-2", "the MCP TypeScript SDK 2", {"@modelcontextprotocol/server": "2.4.0"}, "node"
)

Command = tuple[str, ...]


class Engine(Struct, frozen=True):
    """An engine, and how to get the command that starts its server."""

    name: str
    title: str
    prepare: Callable[[], Command]


def _ours(server: str) -> Callable[[], Command]:
    return lambda: (sys.executable, str(SERVERS / server))


def _python(environment: Environment, server: str) -> Callable[[], Command]:
    def prepare() -> Command:
        install(environment)
        return (str(python(environment)), str(SERVERS / server))

    return prepare


def _node(environment: Environment, server: str) -> Callable[[], Command]:
    def prepare() -> Command:
        install(environment)
        # Node looks for packages from where the program is.
        program = environment.home / server
        shutil.copyfile(SERVERS / server, program)
        return (str(NODE), str(program))

    return prepare


def _version(environment: Environment) -> str:
    (version,) = environment.pins.values()
    return version


ENGINES: Final = (
    Engine("ours", "Dittybag", _ours("ours.py")),
    Engine("ours-sync", "Dittybag, sync handler", _ours("ours_sync.py")),
    Engine(
        "python-sdk", f"Python SDK {_version(PYTHON_SDK)}, low level", _python(PYTHON_SDK, "python_sdk.py")
    ),
    Engine("fastmcp", f"FastMCP {_version(FASTMCP)}", _python(FASTMCP, "fastmcp_server.py")),
    Engine(
        "typescript-1", f"TypeScript SDK {_version(TYPESCRIPT_1)}", _node(TYPESCRIPT_1, "typescript_1.mjs")
    ),
    Engine(
        "typescript-2", f"TypeScript SDK {_version(TYPESCRIPT_2)}", _node(TYPESCRIPT_2, "typescript_2.mjs")
    ),
    Engine("floor", "floor: blocking loop", _ours("floor.py")),
)


class Effort(Struct, frozen=True):
    """How much is measured."""

    spawns: int
    rounds: int
    #: How long each timed load takes, about.
    seconds: float
    #: The load before memory is taken, the same for all: it warms up compilers and caches as well.
    sequential_first: int
    pipelined_first: int


FULL: Final = Effort(spawns=21, rounds=9, seconds=0.8, sequential_first=2000, pipelined_first=5000)
QUICK: Final = Effort(spawns=7, rounds=3, seconds=0.4, sequential_first=300, pipelined_first=1000)

#: A moment for the runtime to finish what it does in the background after start-up or load.
SETTLE_SECONDS: Final = 0.3
#: So many calls are always made, however slow the engine, and never more.
FEWEST_CALLS: Final = 200
MOST_CALLS: Final = 400_000


def measure(engines: Sequence[Engine], effort: Effort) -> dict[str, Figures]:
    """All samples of all engines."""
    CACHE.mkdir(parents=True, exist_ok=True)
    # Progress of any kind stays out of what may be JSON.
    with contextlib.redirect_stdout(sys.stderr):
        commands = {engine.name: engine.prepare() for engine in engines}
    figures = {engine.name: Figures(engine.title) for engine in engines}
    for engine in engines:
        # Once before it counts: bytecode gets written, and files come into the system's cache.
        tell(f"Trying {engine.title} ...")
        with Connection(commands[engine.name]) as connection:
            connection.greet()
            connection.list_tools()
            connection.call_one_by_one(Calls(10))
    for number in range(effort.spawns):
        tell(f"Start-up {number + 1} of {effort.spawns} ...")
        for engine in engines:
            figures[engine.name].first_answer.append(_time_first_answer(commands[engine.name]))
    for number in range(effort.rounds):
        for engine in engines:
            tell(f"Load {number + 1} of {effort.rounds}: {engine.title} ...")
            _measure_load(commands[engine.name], effort, figures[engine.name])
    return figures


def _time_first_answer(command: Command) -> float:
    start = time.perf_counter()
    with Connection(command) as connection:
        connection.greet()
        return time.perf_counter() - start


def _measure_load(command: Command, effort: Effort, figures: Figures) -> None:
    with Connection(command) as connection:
        connection.greet()
        connection.list_tools()
        time.sleep(SETTLE_SECONDS)
        figures.memory_idle.append(connection.memory())
        sequential = _rate(connection.call_one_by_one, effort.sequential_first)
        pipelined = _rate(connection.call_all_at_once, effort.pipelined_first)
        time.sleep(SETTLE_SECONDS)
        figures.memory_loaded.append(connection.memory())
        count = _calls_for(effort.seconds, sequential)
        figures.sequential.append(_rate(connection.call_one_by_one, count))
        count = _calls_for(effort.seconds, pipelined)
        figures.pipelined.append(_rate(connection.call_all_at_once, count))


def _rate(load: Callable[[Calls], float], count: int) -> float:
    return count / load(Calls(count))


def _calls_for(seconds: float, rate: float) -> int:
    return min(max(int(seconds * rate), FEWEST_CALLS), MOST_CALLS)


def _chosen(names: Sequence[str]) -> list[Engine]:
    known = {engine.name for engine in ENGINES}
    if unknown := sorted(set(names) - known):
        raise SystemExit(
            f"error: unknown engine: {', '.join(unknown)}\nhint: there are {', '.join(sorted(known))}"
        )
    return [engine for engine in ENGINES if not names or engine.name in names]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_engines", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="fewer and shorter measurements, within a minute"
    )
    parser.add_argument("--json", action="store_true", help="all samples as JSON")
    names = ", ".join(engine.name for engine in ENGINES)
    parser.add_argument("--only", default="", metavar="NAMES", help=f"some of: {names}")
    options = parser.parse_args()
    engines = _chosen([name for name in options.only.replace(",", " ").split() if name])
    try:
        figures = measure(engines, QUICK if options.quick else FULL)
    except (ServerFailed, SetupFailed) as error:
        raise SystemExit(f"error: {error}") from None
    if options.json:
        report = {
            "machine": machine(),
            "engines": {
                name: {"samples": found, "medians": medians(found)} for name, found in figures.items()
            },
            "bars": bars(figures),
        }
        print(msgspec.json.format(msgspec.json.encode(report)).decode())
    else:
        print(tables(figures, machine()))


if __name__ == "__main__":
    main()
