"""The official clients of both eras, through nginx: each request may go to another server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.fleet.fleet import Fleet, until
from tests.interop.drivers import DRIVERS, Driver
from tests.interop.environments import NODE, ROOT, python

CLIENTS: Final = Path(__file__).resolve().parent / "clients"
#: A client of each language for each era.
CHOSEN: Final = ("python-1", "python-2-auto", "typescript-1", "typescript-2-auto")
DRIVER_SECONDS: Final = 30.0


def command(driver: Driver, plan: dict[str, Any]) -> list[str]:
    program = str(CLIENTS / driver.program)
    if driver.environment.language == "python":
        return [str(python(driver.environment)), program, json.dumps(plan)]
    return [str(NODE), program, json.dumps({**plan, "home": str(driver.environment.home)})]


def servers_of(fleet: Fleet, mark: str) -> list[str]:
    """The servers that have answered the requests with this id, in their order."""
    lines = [msgspec.json.decode(line) for line in fleet.log.read_text().splitlines()]
    return [line["server"] for line in lines if line["request_id"] == mark and line["path"] == "/mcp"]


@pytest.mark.parametrize(
    "driver", [driver for driver in DRIVERS if driver.name in CHOSEN], ids=lambda driver: driver.name
)
def test_an_official_client_does_everything_through_nginx(fleet: Fleet, token: str, driver: Driver) -> None:
    if not driver.environment.is_made:
        pytest.fail(
            f"there is no environment for {driver.environment.title}\n"
            f"hint: make it with: python -m tests.interop.environments {driver.environment.name}",
            pytrace=False,
        )
    name = f"of-{driver.name}"
    plan = {
        "url": fleet.front.url,
        # One id for all its requests, by which they are found in the log of nginx.
        "headers": {"Authorization": f"Bearer {token}", "X-Request-Id": name},
        "mode": driver.mode,
        "name": name,
        "uri": f"file:///{name}",
        "prompt": {"content": "Hello {{ who }}", "arguments": [{"name": "who", "required": True}]},
        "arguments": {"who": "Ann"},
    }
    done = subprocess.run(
        command(driver, plan),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DRIVER_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{driver.name} failed:\n{done.stderr[-6000:]}\n{done.stdout[-500:]}"
    seen = json.loads(done.stdout)
    assert seen["version"] == driver.version
    assert {"create_prompt", "task_create", "search"} <= set(seen["tools"])
    assert name in seen["prompts"]
    assert seen["prompt"] == "Hello Ann"
    assert f"file:///{name}" in seen["resources"]
    assert (seen["told"], seen["read"]) == (f"file:///{name}", "two")
    # The requests went round: no server had this client to itself.
    everyone = {f"127.0.0.1:{member.address[1]}" for member in fleet.members}
    until(lambda: set(servers_of(fleet, name)) == everyone, f"not one of {everyone} is left out")
