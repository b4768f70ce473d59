"""Servers and databases that die under load: nothing acknowledged is lost, nothing done twice."""

from __future__ import annotations

import random
import signal
import time

import pytest

from tests.fleet.callers import load
from tests.fleet.fleet import Fleet, until

RESTARTS = 10
SEED = 20261120


@pytest.mark.timeout(60)
def test_a_server_that_is_killed_is_missed_by_nobody(fleet: Fleet, tokens: list[str]) -> None:
    with load(fleet, tokens, "kill") as clients:
        clients.until_more(5)
        for member in fleet.members:
            status = member.end(signal.SIGKILL)
            assert status == -signal.SIGKILL
            # The others go on without it, and it goes on where it left off.
            clients.until_more(10)
            before = fleet.log.stat().st_size
            member.start()
            member.wait_until_ready()
            address = f"127.0.0.1:{member.address[1]}"
            until(
                lambda before=before, address=address: serves(fleet, address, before),  # type: ignore[misc]
                f"nginx comes back to {address}",
            )
            clients.until_more(5)
    clients.check(fleet)
    print(
        f"\n{len(fleet.members)} kills: {clients.acknowledged} writes acknowledged, none lost, none doubled;"
        f" nobody waited longer than {clients.longest:.2f} s; instead of an acknowledgement:"
        f" {dict(clients.words) or 'nothing'}"
    )


def serves(fleet: Fleet, address: str, since: int) -> bool:
    """Whether a server has answered anything, from this place in nginx's log on."""
    with fleet.log.open() as log:
        log.seek(since)
        return any('"status":200' in line and f'"server":"{address}"' in line for line in log)


@pytest.mark.timeout(110)
def test_a_database_that_crashes_is_back_for_everybody_within_5_seconds(
    fleet: Fleet, tokens: list[str]
) -> None:
    chance = random.Random(SEED)
    back: list[float] = []
    with load(fleet, tokens, "crash") as clients:
        clients.until_more(3)
        for _ in range(RESTARTS):
            # At another moment of what the servers do each time.
            clients.until_more(chance.randint(0, 3))
            begun = time.monotonic()
            fleet.database.stop(signal.SIGQUIT)
            fleet.database.start()
            clients.until_more(2, 5.0 - (time.monotonic() - begun))
            back.append(time.monotonic() - begun)
    clients.check(fleet)
    print(
        f"\n{RESTARTS} crashes of PostgreSQL: {clients.acknowledged} writes acknowledged, none lost,"
        f" none doubled; everybody was served again after {min(back):.2f} to {max(back):.2f} s;"
        f" nobody waited longer than {clients.longest:.2f} s; instead of an acknowledgement:"
        f" {dict(clients.words) or 'nothing'}"
    )
