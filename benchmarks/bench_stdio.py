"""Compares Dittybag with other MCP servers on stdio: `python -m benchmarks.bench_stdio`.

The official clients start each server and call it: `dittybag serve` as installed, with a workspace of 1,000
prompts that it reads, Dittybag's engine and the servers of other engines with a tool that returns its
argument, and floors. Servers take turns in every round, so that changes in machine load affect all of them.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from tests.interop.environments import PYTHON_2, TYPESCRIPT_1, TYPESCRIPT_2

from benchmarks.client_process import ClientProcess, ClientProgram, ToolCalls
from benchmarks.comparison_options import Sampling, run_comparison
from benchmarks.peers import CACHE, SERVERS, STDIO_PEERS
from benchmarks.product import Product, echoes, fill_workspace
from benchmarks.report_output import ReportTable, print_progress
from benchmarks.stdio_report import StdioSamples, stdio_tables

CLIENTS: Final = (
    ClientProgram("Python SDK 2.3.0", "python_sdk.py", PYTHON_2),
    ClientProgram("TypeScript SDK 1.32.2", "typescript_1.mjs", TYPESCRIPT_1),
    ClientProgram("TypeScript client 2.4.0", "typescript_2.mjs", TYPESCRIPT_2),
    # It needs no package; any Python will do.
    ClientProgram("raw pipes", "raw_pipes.py", PYTHON_2),
)
#: The length of the warm-up before each load.
WARM_UP: Final = 0.1
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


FULL: Final = Sampling(rounds=5, seconds=0.25)
QUICK: Final = Sampling(rounds=2, seconds=0.15)


def _of_product(product: Product, folder: Path, prompts: int) -> Iterator[MeasuredServer]:
    """Yield `dittybag serve` on a workspace, and the engine with a tool that returns its argument."""
    found = fill_workspace(product, folder, prompts)
    serve = [product.command, "serve", "--db", found.database, "--profile", "agent"]
    yield MeasuredServer(product.title, serve, found.reads("read"), found.variables)
    engine = [product.python, str(SERVERS / "dittybag_stdio.py")]
    yield MeasuredServer(f"{product.title}, engine only", engine, echoes(prompts))


def _servers(found: Sequence[Product], folder: Path, sampling: Sampling) -> list[MeasuredServer]:
    prompts = sampling.prompts
    own = [
        server
        for place, product in enumerate(found)
        for server in _of_product(product, folder / str(place), prompts)
    ]
    return [*own, *(MeasuredServer(peer.title, peer.command(), echoes(prompts)) for peer in STDIO_PEERS)]


def measure(found: Sequence[Product], sampling: Sampling, only: str) -> list[ReportTable]:
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
    return stdio_tables(list(samples.values()), PIPELINED)


def _measure_server(
    client: ClientProcess, server: MeasuredServer, sampling: Sampling, samples: StdioSamples
) -> None:
    start = client.open(server.plan, server.calls)
    samples.initialize.append(start.initialize)
    samples.tools.append(start.tools)
    samples.start_cpu.append(start.cpu)
    client.load(WARM_UP)
    samples.sequential.append(client.load(sampling.seconds))
    client.load(WARM_UP, at_a_time=PIPELINED)
    samples.pipelined.append(client.load(sampling.seconds, at_a_time=PIPELINED))
    samples.memory.append(client.server_memory())
    client.close()


if __name__ == "__main__":
    run_comparison("bench_stdio", __doc__, (FULL, QUICK), measure)
