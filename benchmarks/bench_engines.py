"""Compares the engine with other MCP engines on stdio: `python -m benchmarks.bench_engines`.

Each engine runs the same trivial server with one tool that returns its argument. Process starts and rounds
alternate between the engines, so that changes in machine load affect all of them. Results are medians.
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

from benchmarks.engine_report import EngineSamples, check_targets, medians, tables
from benchmarks.report_output import describe_machine, print_progress
from benchmarks.stdio_client import EchoCalls, ServerFailed, StdioServer

SERVERS: Final = Path(__file__).parent / "servers"
CACHE: Final = ROOT / ".cache" / "benchmarks"


class EngineEnvironment(Environment, frozen=True):
    """The environment of another engine, separate from those of the test clients."""

    @property
    def home(self) -> Path:
        return CACHE / self.name


#: The other engines, with pinned versions.
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
    """An engine, with a function that returns the command of its server."""

    name: str
    title: str
    prepare: Callable[[], Command]


def _dittybag(server: str) -> Callable[[], Command]:
    return lambda: (sys.executable, str(SERVERS / server))


def _python(environment: Environment, server: str) -> Callable[[], Command]:
    def prepare() -> Command:
        install(environment)
        return (str(python(environment)), str(SERVERS / server))

    return prepare


def _node(environment: Environment, server: str) -> Callable[[], Command]:
    def prepare() -> Command:
        install(environment)
        # Node resolves packages relative to the program.
        program = environment.home / server
        shutil.copyfile(SERVERS / server, program)
        return (str(NODE), str(program))

    return prepare


def _version(environment: Environment) -> str:
    (version,) = environment.pins.values()
    return version


ENGINES: Final = (
    Engine("dittybag", "Dittybag", _dittybag("dittybag_stdio.py")),
    Engine("dittybag-sync", "Dittybag, sync handler", _dittybag("dittybag_stdio_sync.py")),
    Engine(
        "python-sdk", f"Python SDK {_version(PYTHON_SDK)}, low level", _python(PYTHON_SDK, "python_sdk.py")
    ),
    Engine("fastmcp", f"FastMCP {_version(FASTMCP)}", _python(FASTMCP, "fastmcp_server.py")),
    Engine(
        "typescript-1",
        f"TypeScript SDK {_version(TYPESCRIPT_1)}",
        _node(TYPESCRIPT_1, "typescript_sdk_1.mjs"),
    ),
    Engine(
        "typescript-2",
        f"TypeScript SDK {_version(TYPESCRIPT_2)}",
        _node(TYPESCRIPT_2, "typescript_sdk_2.mjs"),
    ),
    Engine("baseline", "baseline: blocking loop", _dittybag("baseline_stdio.py")),
)


class EngineSampling(Struct, frozen=True):
    """The number and length of the measurements."""

    spawns: int
    rounds: int
    #: The approximate length of each timed load.
    seconds: float
    #: The number of warm-up calls before memory is measured, the same for all engines.
    sequential_warm_up: int
    pipelined_warm_up: int


FULL: Final = EngineSampling(
    spawns=21, rounds=9, seconds=0.8, sequential_warm_up=2000, pipelined_warm_up=5000
)
QUICK: Final = EngineSampling(spawns=7, rounds=3, seconds=0.4, sequential_warm_up=300, pipelined_warm_up=1000)

#: Time for background work of the runtime after start-up or load.
SETTLE_SECONDS: Final = 0.3
#: The minimum and maximum number of calls in a timed load.
MIN_CALLS: Final = 200
MAX_CALLS: Final = 400_000


def measure(engines: Sequence[Engine], sampling: EngineSampling) -> dict[str, EngineSamples]:
    """Measure all engines and return their samples by name."""
    CACHE.mkdir(parents=True, exist_ok=True)
    # Keep progress messages out of the JSON output.
    with contextlib.redirect_stdout(sys.stderr):
        commands = {engine.name: engine.prepare() for engine in engines}
    figures = {engine.name: EngineSamples(engine.title) for engine in engines}
    for engine in engines:
        # A first run without measurement writes bytecode and fills the file cache.
        print_progress(f"Warming up {engine.title} ...")
        with StdioServer(commands[engine.name]) as connection:
            connection.initialize()
            connection.list_tools()
            connection.call_sequentially(EchoCalls(10))
    for number in range(sampling.spawns):
        print_progress(f"Start-up {number + 1} of {sampling.spawns} ...")
        for engine in engines:
            figures[engine.name].first_response.append(_time_first_response(commands[engine.name]))
    for number in range(sampling.rounds):
        for engine in engines:
            print_progress(f"Load {number + 1} of {sampling.rounds}: {engine.title} ...")
            _measure_load(commands[engine.name], sampling, figures[engine.name])
    return figures


def _time_first_response(command: Command) -> float:
    start = time.perf_counter()
    with StdioServer(command) as connection:
        connection.initialize()
        return time.perf_counter() - start


def _measure_load(command: Command, sampling: EngineSampling, figures: EngineSamples) -> None:
    with StdioServer(command) as connection:
        connection.initialize()
        connection.list_tools()
        time.sleep(SETTLE_SECONDS)
        figures.memory_idle.append(connection.memory())
        sequential = _rate(connection.call_sequentially, sampling.sequential_warm_up)
        pipelined = _rate(connection.call_pipelined, sampling.pipelined_warm_up)
        time.sleep(SETTLE_SECONDS)
        figures.memory_loaded.append(connection.memory())
        count = _calls_for(sampling.seconds, sequential)
        figures.sequential.append(_rate(connection.call_sequentially, count))
        count = _calls_for(sampling.seconds, pipelined)
        figures.pipelined.append(_rate(connection.call_pipelined, count))


def _rate(load: Callable[[EchoCalls], float], count: int) -> float:
    return count / load(EchoCalls(count))


def _calls_for(seconds: float, rate: float) -> int:
    return min(max(int(seconds * rate), MIN_CALLS), MAX_CALLS)


def _select_engines(names: Sequence[str]) -> list[Engine]:
    known = {engine.name for engine in ENGINES}
    if unknown := sorted(set(names) - known):
        raise SystemExit(
            f"error: unknown engine: {', '.join(unknown)}\nhint: choose from {', '.join(sorted(known))}"
        )
    return [engine for engine in ENGINES if not names or engine.name in names]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_engines", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="fewer and shorter measurements (about a minute)"
    )
    parser.add_argument("--json", action="store_true", help="print all samples as JSON")
    names = ", ".join(engine.name for engine in ENGINES)
    parser.add_argument("--only", default="", metavar="NAMES", help=f"comma-separated engines: {names}")
    options = parser.parse_args()
    engines = _select_engines([name for name in options.only.replace(",", " ").split() if name])
    try:
        figures = measure(engines, QUICK if options.quick else FULL)
    except (ServerFailed, SetupFailed) as error:
        raise SystemExit(f"error: {error}") from None
    if options.json:
        report = {
            "machine": describe_machine(),
            "engines": {
                name: {"samples": found, "medians": medians(found)} for name, found in figures.items()
            },
            "targets": check_targets(figures),
        }
        print(msgspec.json.format(msgspec.json.encode(report)).decode())
    else:
        print(tables(figures, describe_machine()))


if __name__ == "__main__":
    main()
