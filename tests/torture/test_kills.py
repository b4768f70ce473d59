"""SIGKILL at any moment: no acknowledged write is lost, no write is partial, index and log match the rows."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.repetitions import SEED, repetitions
from tests.storage.sqlite.scripted_process import ScriptedProcess
from tests.torture.journaling_writer import JournalingWriter
from tests.torture.sqlite_audit import SqliteAudit

KILLS = repetitions(30, 1000)

#: The number of unanswered requests to each server.
WINDOW = 24
#: A running server is killed within this time, in seconds.
LONGEST_LIFE = 0.03


@contextmanager
def writers(database: Path, count: int) -> Iterator[list[JournalingWriter]]:
    """Open `count` clients of one database, each with its own server."""
    opened = [JournalingWriter(database, f"w{number}", SEED + number) for number in range(count)]
    try:
        for writer in opened:
            writer.start()
            writer.handshake()
        yield opened
    finally:
        for writer in opened:
            writer.stop()


def check(database: Path, all_writers: list[JournalingWriter]) -> None:
    """Check the database and the journals while no request is unanswered."""
    with closing(SqliteAudit(database)) as audit:
        audit.check()
        stored = audit.stored_values()
        for writer in all_writers:
            writer.check(stored)


@pytest.mark.timeout(120 + 3 * KILLS)
def test_no_acknowledged_write_is_lost_when_servers_are_killed_while_writing(
    tmp_path: Path,
) -> None:
    database = tmp_path / "store.db"
    rng = random.Random(SEED)
    kills = unanswered = 0
    with writers(database, 2) as both:
        while kills < KILLS:
            end = time.monotonic() + rng.uniform(0, LONGEST_LIFE)
            while (left := end - time.monotonic()) > 0:
                for writer in both:
                    writer.send_writes(WINDOW)
                    writer.receive(min(left, 0.001))
            # In half of the cases kill both, so that no process has the file open.
            victims = rng.sample(both, rng.randint(1, 2))
            for victim in victims:
                victim.send_writes(WINDOW)
            if rng.random() < 0.5:
                # Kill when a response arrives: the write that it acknowledges must already be committed.
                victims[0].send_large_write(WINDOW)
                victims[0].wait_for_response()
            for victim in victims:
                victim.kill()
                kills += 1
                unanswered += bool(victim.in_flight)
            for survivor in both:
                if survivor not in victims:
                    survivor.wait_for_all()
            with closing(SqliteAudit(database)) as audit:
                for victim in victims:
                    victim.reconcile(audit.stored_values(), audit.task_ids())
            check(database, both)
            for victim in victims:
                victim.start()
                victim.handshake()
        for writer in both:
            writer.wait_for_all()
        check(database, both)
        acknowledged = sum(writer.acknowledged for writer in both)
    assert unanswered > kills * 0.5, "the servers must be killed while requests are unanswered"
    assert acknowledged > kills * 10, "the servers must run long enough to respond"


def test_four_processes_write_concurrently_without_lost_writes_or_lock_errors(
    tmp_path: Path,
) -> None:
    database = tmp_path / "store.db"
    each = 250
    with writers(database, 4) as all_writers:
        while any(writer.acknowledged < each for writer in all_writers):
            for writer in all_writers:
                writer.send_writes(min(WINDOW, each - writer.acknowledged))
            for writer in all_writers:
                # An error response, for example for a lock, fails the test here.
                writer.receive(0.001)
        for writer in all_writers:
            writer.wait_for_all()
        assert [writer.acknowledged for writer in all_writers] == [each] * 4
        check(database, all_writers)


def test_a_database_is_usable_after_a_kill_during_its_creation(
    tmp_path: Path,
) -> None:
    rng = random.Random(SEED)
    for number in range(max(1, KILLS // 5)):
        database = tmp_path / f"{number}.db"
        with ScriptedProcess("sqlite_opener") as child:
            assert child.read_reply() == "ready"
            child.send(str(database))
            child.wait_for_output(rng.uniform(0, 0.015))
        with ScriptedProcess("sqlite_opener") as child:
            assert child.read_reply() == "ready"
            assert child.request(str(database)) == {"open": "ok", "read": "ok", "write": "ok"}
        with closing(SqliteAudit(database)) as audit:
            audit.check()
