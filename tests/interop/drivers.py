"""The official clients as programs: each goes through one plan with the fixture and tells what it saw."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tests.conformance.servers import FIXTURE, listening
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

CLIENTS: Final = Path(__file__).resolve().parent / "clients"
#: A driver that has not finished by then hangs.
DRIVER_SECONDS: Final = 60.0

#: How a client may reach a server.
STDIO: Final = "stdio"
HTTP: Final = "http"
TRANSPORTS: Final = (STDIO, HTTP)

HANDSHAKE: Final = "2025-11-25"
STATELESS: Final = "2026-07-28"


class Driver(Struct, frozen=True, kw_only=True):
    """One official client in one of its modes."""

    name: str
    environment: Environment
    program: str
    #: The revision that this client and the fixture must agree on.
    version: str
    #: How to agree on a revision, in the client's own words.
    mode: Any = None
    #: The code of the error for an unknown resource, as the client shows it.
    resource_not_found: int = -32602
    #: Whether it asks the server who it is before anything else.
    asks_first: bool = True
    #: Whether it tries out another process of the server first, and ends it with a signal.
    probes: bool = False

    @property
    def stateless(self) -> bool:
        return self.version == STATELESS

    @property
    def logs(self) -> int:
        """How many log messages the plan leads to: before 2026 some come without being asked for."""
        return 3 if self.stateless else 5

    def command(self, plan: dict[str, Any]) -> list[str]:
        program = str(CLIENTS / self.program)
        if self.environment.language == "python":
            return [str(python(self.environment)), program, json.dumps(plan)]
        return [str(NODE), program, json.dumps({**plan, "home": str(self.environment.home)})]


DRIVERS: Final = (
    Driver(name="python-2-auto", environment=PYTHON_2, program="python_2.py", version=STATELESS, mode="auto"),
    Driver(
        name="python-2-pinned",
        environment=PYTHON_2,
        program="python_2.py",
        version=STATELESS,
        mode=STATELESS,
        asks_first=False,
    ),
    Driver(
        name="python-2-handshake",
        environment=PYTHON_2,
        program="python_2.py",
        version=HANDSHAKE,
        mode="legacy",
        resource_not_found=-32002,
    ),
    Driver(
        name="python-1",
        environment=PYTHON_1,
        program="python_1.py",
        version=HANDSHAKE,
        resource_not_found=-32002,
    ),
    Driver(
        name="typescript-2-auto",
        environment=TYPESCRIPT_2,
        program="typescript_2.mjs",
        version=STATELESS,
        mode="auto",
        probes=True,
    ),
    Driver(
        name="typescript-2-pinned",
        environment=TYPESCRIPT_2,
        program="typescript_2.mjs",
        version=STATELESS,
        mode={"pin": STATELESS},
        probes=True,
    ),
    # In the handshake era, too, this client shows the code that 2026 has for an unknown resource.
    Driver(
        name="typescript-2-handshake",
        environment=TYPESCRIPT_2,
        program="typescript_2.mjs",
        version=HANDSHAKE,
        mode="legacy",
    ),
    Driver(
        name="typescript-1",
        environment=TYPESCRIPT_1,
        program="typescript_1.mjs",
        version=HANDSHAKE,
        resource_not_found=-32002,
    ),
)


class Sighting(Struct, frozen=True):
    """What a client saw of the fixture, and how the fixture's processes ended."""

    driver: Driver
    transport: str
    seen: dict[str, Any]
    ends: list[dict[str, Any]]


def fixture_command(report: Path) -> dict[str, Any]:
    """How to start the fixture, the way stdio clients want to be told."""
    return {
        "command": sys.executable,
        "args": ["-m", "tests.interop.witness", str(report)],
        "cwd": str(ROOT),
    }


def ends(report: Path) -> list[dict[str, Any]]:
    """How each process of the fixture ended."""
    assert report.exists(), "the fixture never ended by itself"
    return [json.loads(line) for line in report.read_text().splitlines()]


def drive(driver: Driver, transport: str, plan: dict[str, Any], folder: Path) -> Sighting:
    """Run a driver through the plan, with a new fixture."""
    if transport == STDIO:
        report = folder / "ends"
        seen = run(driver, {**plan, "server": fixture_command(report), "logs": driver.logs})
        return Sighting(driver, transport, seen, ends(report))
    with listening(*FIXTURE) as server:
        seen = run(driver, {**plan, "server": {"url": server.address}, "logs": driver.logs})
        end = server.end()
    return Sighting(driver, transport, seen, [{"status": end.status, "said": end.said}])


def run(driver: Driver, plan: dict[str, Any]) -> Any:
    """Run a driver with a plan; what it tells."""
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
