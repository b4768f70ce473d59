"""Crashes of servers and of the database under load: no acknowledged write is lost or doubled."""

from __future__ import annotations

import random
import signal
import time

import pytest

from tests.fleet.fleet_clients import run_load
from tests.fleet.server_fleet import Fleet, wait_until

RESTARTS = 10
SEED = 20261120


@pytest.mark.timeout(60)
def test_clients_continue_when_a_server_is_killed(fleet: Fleet, tokens: list[str]) -> None:
    with run_load(fleet, tokens, "kill") as writers:
        writers.wait_for_more(5)
        for server in fleet.servers:
            status = server.stop(signal.SIGKILL)
            assert status == -signal.SIGKILL
            # The other servers take over; the restarted server gets requests again.
            writers.wait_for_more(10)
            before = fleet.log.stat().st_size
            server.start()
            server.wait_until_ready()
            address = f"127.0.0.1:{server.address[1]}"
            wait_until(
                lambda before=before, address=address: has_answered(fleet, address, before),  # type: ignore[misc]
                f"nginx sends requests to {address} again",
            )
            writers.wait_for_more(5)
    writers.check(fleet)
    print(
        f"\n{len(fleet.servers)} kills: {writers.acknowledged} writes acknowledged, none lost, none doubled;"
        f" longest wait {writers.longest_wait:.2f} s; errors: {dict(writers.messages) or 'none'}"
    )


def has_answered(fleet: Fleet, address: str, since: int) -> bool:
    """Whether a server has answered a request since this position in nginx's log."""
    with fleet.log.open() as log:
        log.seek(since)
        return any('"status":200' in line and f'"server":"{address}"' in line for line in log)


@pytest.mark.timeout(110)
def test_all_clients_recover_from_a_database_crash_within_5_seconds(fleet: Fleet, tokens: list[str]) -> None:
    rng = random.Random(SEED)
    recovery_seconds: list[float] = []
    with run_load(fleet, tokens, "crash") as writers:
        writers.wait_for_more(3)
        for _ in range(RESTARTS):
            # Vary the moment of the crash.
            writers.wait_for_more(rng.randint(0, 3))
            started = time.monotonic()
            fleet.database.stop(signal.SIGQUIT)
            fleet.database.start()
            writers.wait_for_more(2, 5.0 - (time.monotonic() - started))
            recovery_seconds.append(time.monotonic() - started)
    writers.check(fleet)
    print(
        f"\n{RESTARTS} crashes of PostgreSQL: {writers.acknowledged} writes acknowledged, none lost,"
        f" none doubled; recovered in {min(recovery_seconds):.2f} to {max(recovery_seconds):.2f} s;"
        f" longest wait {writers.longest_wait:.2f} s; errors: {dict(writers.messages) or 'none'}"
    )
