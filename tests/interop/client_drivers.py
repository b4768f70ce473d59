"""Runs the official clients as programs: each executes a plan and reports its results as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tests.http.spawned_server import SpawnedServer
from tests.interop.environments import (
    NODE,
    PYTHON_1,
    PYTHON_2,
    ROOT,
    TYPESCRIPT_1,
    TYPESCRIPT_2,
    Environment,
    python,
)
from tests.repetitions import IS_FULL

CLIENTS: Final = Path(__file__).resolve().parent / "clients"
#: Timeout for one client program.
DRIVER_SECONDS: Final = 60.0

STDIO: Final = "stdio"
HTTP: Final = "http"
TRANSPORTS: Final = (STDIO, HTTP)

HANDSHAKE: Final = "2025-11-25"
STATELESS: Final = "2026-07-28"


class Driver(Struct, frozen=True):
    """One official client in one of its modes."""

    name: str
    environment: Environment
    #: The revision that this client and the everything server must negotiate.
    version: str
    #: The beginning of the name of its program, which ends with that of the environment.
    suite: str = "interop"
    folder: Path = CLIENTS
    #: How to negotiate a revision, as the client's own option.
    mode: Any = None
    #: The error code for an unknown resource, as the client reports it.
    resource_not_found: int = -32602
    #: Whether the client requests the server's information before anything else.
    discovers_server: bool = True
    #: Whether the client first starts another server process as a probe, and ends it with a signal.
    probes_first: bool = False

    @property
    def stateless(self) -> bool:
        return self.version == STATELESS

    @property
    def logs(self) -> int:
        """The expected number of log messages. Before 2026, some are sent without a request."""
        return 3 if self.stateless else 5

    def command(self, plan: dict[str, Any]) -> list[str]:
        program = str(self.folder / f"{self.suite}_{self.environment.name.replace('-', '_')}")
        if self.environment.language == "python":
            return [str(python(self.environment)), f"{program}.py", json.dumps(plan)]
        return [str(NODE), f"{program}.mjs", json.dumps({**plan, "home": str(self.environment.home)})]


ALL_DRIVERS: Final = (
    Driver("python-2-auto", PYTHON_2, STATELESS, mode="auto"),
    Driver("python-2-pinned", PYTHON_2, STATELESS, mode=STATELESS, discovers_server=False),
    Driver("python-2-handshake", PYTHON_2, HANDSHAKE, mode="legacy", resource_not_found=-32002),
    Driver("python-1", PYTHON_1, HANDSHAKE, resource_not_found=-32002),
    Driver("typescript-2-auto", TYPESCRIPT_2, STATELESS, mode="auto", probes_first=True),
    Driver("typescript-2-pinned", TYPESCRIPT_2, STATELESS, mode={"pin": STATELESS}, probes_first=True),
    # This client reports the 2026 error code for an unknown resource in the handshake era as well.
    Driver("typescript-2-handshake", TYPESCRIPT_2, HANDSHAKE, mode="legacy"),
    Driver("typescript-1", TYPESCRIPT_1, HANDSHAKE, resource_not_found=-32002),
)

#: A client that is pinned to a revision differs from others only in how it connects.
DRIVERS: Final = tuple(driver for driver in ALL_DRIVERS if IS_FULL or not driver.name.endswith("-pinned"))


class Observation(Struct, frozen=True):
    """The results that a client reported, and how the server processes ended."""

    driver: Driver
    transport: str
    seen: dict[str, Any]
    exits: list[dict[str, Any]]


def everything_stdio_config(report: Path) -> dict[str, Any]:
    """Return the configuration with which stdio clients start the everything server."""
    return {
        "command": sys.executable,
        "args": ["-m", "tests.interop.exit_recorder", str(report)],
        "cwd": str(ROOT),
    }


def read_exits(report: Path) -> list[dict[str, Any]]:
    """Return how each server process ended."""
    assert report.exists(), "no server process ended by itself"
    return [json.loads(line) for line in report.read_text().splitlines()]


def drive(driver: Driver, transport: str, plan: dict[str, Any], folder: Path) -> Observation:
    """Run a client through the plan with a new everything server."""
    if transport == STDIO:
        report = folder / "exits"
        seen = run(driver, {**plan, "server": everything_stdio_config(report), "logs": driver.logs})
        return Observation(driver, transport, seen, read_exits(report))
    with SpawnedServer.everything() as server:
        seen = run(driver, {**plan, "server": {"url": server.address}, "logs": driver.logs})
        status, output = server.end()
    return Observation(driver, transport, seen, [{"status": status, "output": output}])


@contextmanager
def serve_dittybag(transport: str, home: Path, *options: str) -> Iterator[dict[str, Any]]:
    """Serve the data in a folder. Yields the configuration with which clients connect."""
    if transport == STDIO:
        yield {
            "command": sys.executable,
            "args": ["-m", "dittybag", "serve", *options],
            "cwd": str(ROOT),
            "env": {"DITTYBAG_HOME": str(home)},
        }
    else:
        with SpawnedServer.product(home, *options) as server:
            yield {"url": server.address}


def run(driver: Driver, plan: dict[str, Any]) -> Any:
    """Run a client with a plan and return its report."""
    done = subprocess.run(
        driver.command({**plan, "mode": driver.mode}),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DRIVER_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{driver.name} failed:\n{done.stderr[-6000:]}\n{done.stdout[-500:]}"
    return json.loads(done.stdout)
