"""Compares Dittybag with other MCP servers on stdio: `python -m benchmarks.bench_stdio`.

The official clients start each server and call it: `dittybag serve` as installed, with a workspace of 1,000
prompts that it reads, Dittybag's engine and the servers of other engines with a tool that returns its
argument, and floors. Servers take turns in every round, so that changes in machine load affect all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from tests.interop.environments import PYTHON_2, TYPESCRIPT_1, TYPESCRIPT_2, SetupFailed

from benchmarks.client_process import ClientProcess, ClientProgram, ToolCalls
from benchmarks.peers import CACHE, SERVERS, STDIO_PEERS
from benchmarks.product import Product, echoes, fill_workspace, products
from benchmarks.report_output import print_progress, print_tables
from benchmarks.stdio_client import ServerFailed
from benchmarks.stdio_report import StdioSamples, stdio_tables

CLIENTS: Final = (
    ClientProgram("Python SDK 2.3.0", "python_sdk.py", PYTHON_2),
    ClientProgram("TypeScript SDK 1.32.2", "typescript_1.mjs", TYPESCRIPT_1),
    ClientProgram("TypeScript client 2.4.0", "typescript_2.mjs", TYPESCRIPT_2),
    # It needs no package; any Python will do.
    ClientProgram("raw pipes", "raw_pipes.py", PYTHON_2),
)
#: The number of calls under way at the same time, where a client pipelines.
PIPELINED: Final = 32


class MeasuredServer(Struct, frozen=True):
    """A server and the calls that it gets."""

    title: str
    command: list[str]
    calls: ToolCalls
    variables: dict[str, str] = {}

    @property
    def plan(self) -> dict[str, Any]:
        return {"command": self.command, "env": self.variables}


class StdioSampling(Struct, frozen=True):
    """The number and length of the measurements."""

    rounds: int
    #: The length of each load, and of the warm-up before it.
    seconds: float
    warm_up: float
    prompts: int = 1000


FULL: Final = StdioSampling(rounds=5, seconds=0.25, warm_up=0.1)
QUICK: Final = StdioSampling(rounds=2, seconds=0.15, warm_up=0.1)


def _of_product(product: Product, folder: Path, prompts: int) -> Iterator[MeasuredServer]:
    """Yield `dittybag serve` on a workspace, and the engine with a tool that returns its argument."""
    found = fill_workspace(product, folder, prompts)
    serve = [product.command, "serve", "--db", found.database, "--profile", "agent"]
    yield MeasuredServer(product.title, serve, found.reads("read"), found.variables)
    engine = [product.python, str(SERVERS / "dittybag_stdio.py")]
    yield MeasuredServer(f"{product.title}, engine only", engine, echoes(prompts))


def _servers(found: Sequence[Product], folder: Path, sampling: StdioSampling) -> list[MeasuredServer]:
    prompts = sampling.prompts
    own = [
        server
        for place, product in enumerate(found)
        for server in _of_product(product, folder / str(place), prompts)
    ]
    return [*own, *(MeasuredServer(peer.title, peer.command(), echoes(prompts)) for peer in STDIO_PEERS)]


def measure(found: Sequence[Product], sampling: StdioSampling, only: str = "") -> list[StdioSamples]:
    """Measure every server with every client whose title contains a text."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=CACHE)))
        with contextlib.redirect_stdout(sys.stderr):
            servers = _servers(found, folder, sampling)
            clients = {
                client.title: stack.enter_context(ClientProcess(client.command()))
                for client in CLIENTS
                if only in client.title
            }
        samples = {
            (client, server.title): StdioSamples(client, server.title)
            for client in clients
            for server in servers
        }
        for server in servers:
            # The first start writes bytecode and fills the file cache.
            print_progress(f"Warming up {server.title} ...")
            for process in clients.values():
                process.open(server.plan, server.calls)
                process.close()
        for number in range(sampling.rounds):
            print_progress(f"Round {number + 1} of {sampling.rounds} ...")
            for client, process in clients.items():
                for server in servers:
                    _measure_server(process, server, sampling, samples[client, server.title])
        return list(samples.values())


def _measure_server(
    client: ClientProcess, server: MeasuredServer, sampling: StdioSampling, samples: StdioSamples
) -> None:
    start = client.open(server.plan, server.calls)
    samples.initialize.append(start.initialize)
    samples.tools.append(start.tools)
    samples.start_cpu.append(start.cpu)
    client.load(sampling.warm_up)
    samples.sequential.append(client.load(sampling.seconds))
    client.load(sampling.warm_up, at_a_time=PIPELINED)
    samples.pipelined.append(client.load(sampling.seconds, at_a_time=PIPELINED))
    samples.memory.append(client.server_memory())
    client.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_stdio", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter measurements")
    parser.add_argument("--json", action="store_true", help="print the tables as JSON")
    parser.add_argument("--rounds", type=int, help=f"the number of rounds (default: {FULL.rounds})")
    parser.add_argument("--only", default="", help="only clients whose title contains this")
    parser.add_argument("--before", metavar="SOURCE", help="also measure another folder or Git revision")
    options = parser.parse_args()
    sampling = QUICK if options.quick else FULL
    if options.rounds:
        sampling = StdioSampling(options.rounds, sampling.seconds, sampling.warm_up)
    try:
        samples = measure(products(options.before), sampling, options.only)
    except (ServerFailed, SetupFailed) as error:
        raise SystemExit(f"error: {error}") from None
    print_tables(stdio_tables(samples, PIPELINED), as_json=options.json)


if __name__ == "__main__":
    main()
