"""The official clients of both eras behind nginx, which may send each request to another server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.fleet.server_fleet import Fleet, wait_until
from tests.interop.client_drivers import DRIVERS, Driver, run

CLIENTS: Final = Path(__file__).resolve().parent / "clients"
#: One client per language and era.
DRIVER_NAMES: Final = ("python-1", "python-2-auto", "typescript-1", "typescript-2-auto")


def servers_that_answered(fleet: Fleet, request_id: str) -> list[str]:
    """The servers that answered requests with this id, in order."""
    lines = [msgspec.json.decode(line) for line in fleet.log.read_text().splitlines()]
    return [line["server"] for line in lines if line["request_id"] == request_id and line["path"] == "/mcp"]


@pytest.mark.parametrize(
    "driver", [driver for driver in DRIVERS if driver.name in DRIVER_NAMES], ids=lambda driver: driver.name
)
def test_an_official_client_works_through_nginx(fleet: Fleet, token: str, driver: Driver) -> None:
    if not driver.environment.is_installed:
        pytest.fail(
            f"there is no environment for {driver.environment.title}\n"
            f"hint: create it with: python -m tests.interop.environments {driver.environment.name}",
            pytrace=False,
        )
    name = f"fleet-{driver.name}"
    plan = {
        "url": fleet.proxy.url,
        # The same id for all its requests, to find them in the log of nginx.
        "headers": {"Authorization": f"Bearer {token}", "X-Request-Id": name},
        "name": name,
        "uri": f"file:///{name}",
        "prompt": {"content": "Hello {{ who }}", "arguments": [{"name": "who", "required": True}]},
        "arguments": {"who": "Ann"},
    }
    results = run(msgspec.structs.replace(driver, suite="fleet", folder=CLIENTS), plan)
    assert results["version"] == driver.version
    assert {"create_prompt", "task_create", "search"} <= set(results["tools"])
    assert name in results["prompts"]
    assert results["prompt"] == "Hello Ann"
    assert f"file:///{name}" in results["resources"]
    assert (results["updated_uri"], results["read"]) == (f"file:///{name}", "two")
    # Every server handled some of the requests.
    addresses = {f"127.0.0.1:{server.address[1]}" for server in fleet.servers}
    wait_until(
        lambda: set(servers_that_answered(fleet, name)) == addresses, f"all of {addresses} answered requests"
    )
