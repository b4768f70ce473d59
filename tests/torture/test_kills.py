"""SIGKILL at any moment: no acknowledged write lost, nothing half-written, index and log equal to the rows.

`TORTURE_KILLS=1000 TORTURE_SEED=7 pytest tests/torture/test_kills.py` for more of them.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.storage.sqlite.scripted_process import ScriptedProcess
from tests.torture.books import Books
from tests.torture.writers import Writer

KILLS = int(os.environ.get("TORTURE_KILLS", "50"))
SEED = int(os.environ.get("TORTURE_SEED", "20261115"))

#: So many requests are on their way at once to each server.
WINDOW = 24
#: A server that is up is killed within this time.
LONGEST_LIFE = 0.03


@contextmanager
def writers(database: Path, count: int) -> Iterator[list[Writer]]:
    """So many clients of one database, each with a server of its own."""
    made = [Writer(database, f"w{number}", SEED + number) for number in range(count)]
    try:
        for writer in made:
            writer.start()
            writer.greet()
        yield made
    finally:
        for writer in made:
            writer.stop()


def check(database: Path, everybody: list[Writer]) -> None:
    """What must hold while nothing is on its way."""
    with closing(Books(database)) as books:
        books.check()
        things = books.things()
        for writer in everybody:
            writer.check(things)


@pytest.mark.timeout(120 + 3 * KILLS)
def test_no_acknowledged_write_is_lost_when_servers_are_killed_in_the_middle_of_writing(
    tmp_path: Path,
) -> None:
    database = tmp_path / "store.db"
    chance = random.Random(SEED)
    kills = unanswered = 0
    with writers(database, 2) as both:
        while kills < KILLS:
            end = time.monotonic() + chance.uniform(0, LONGEST_LIFE)
            while (left := end - time.monotonic()) > 0:
                for writer in both:
                    writer.fill(WINDOW)
                    writer.receive(min(left, 0.001))
            # Both at once in half of the cases: then nobody is left who has the file open.
            victims = chance.sample(both, chance.randint(1, 2))
            for victim in victims:
                victim.fill(WINDOW)
            if chance.random() < 0.5:
                # At the sight of an answer: what it acknowledges must have been committed before.
                victims[0].fill_with_something_big(WINDOW)
                victims[0].await_answer()
            for victim in victims:
                victim.kill()
                kills += 1
                unanswered += bool(victim.in_flight)
            for survivor in both:
                if survivor not in victims:
                    survivor.settle()
            with closing(Books(database)) as books:
                for victim in victims:
                    victim.find_out(books.things(), books.task_ids())
            for victim in victims:
                victim.start()
            check(database, both)
            for victim in victims:
                victim.greet()
        for writer in both:
            writer.settle()
        check(database, both)
        acknowledged = sum(writer.acknowledged for writer in both)
    assert unanswered > kills * 0.5, "the servers should be killed while requests are on their way"
    assert acknowledged > kills * 10, "the servers should live long enough to answer"


def test_of_a_thousand_writes_by_four_processes_at_once_none_is_lost_and_none_meets_a_lock(
    tmp_path: Path,
) -> None:
    database = tmp_path / "store.db"
    each = 250
    with writers(database, 4) as everybody:
        while any(writer.acknowledged < each for writer in everybody):
            for writer in everybody:
                writer.fill(min(WINDOW, each - writer.acknowledged))
            for writer in everybody:
                # An answer that is an error, such as a lock, fails the test here.
                writer.receive(0.001)
        for writer in everybody:
            writer.settle()
        assert [writer.acknowledged for writer in everybody] == [each] * 4
        check(database, everybody)


def test_a_server_that_is_killed_while_it_makes_a_new_file_leaves_one_that_the_next_can_use(
    tmp_path: Path,
) -> None:
    chance = random.Random(SEED)
    for number in range(max(1, KILLS // 5)):
        database = tmp_path / f"{number}.db"
        with ScriptedProcess("sqlite_opener") as child:
            assert child.read_reply() == "ready"
            child.send(str(database))
            child.wait_for_output(chance.uniform(0, 0.015))
        with ScriptedProcess("sqlite_opener") as child:
            assert child.read_reply() == "ready"
            assert child.request(str(database)) == {"open": "ok", "read": "ok", "write": "ok"}
        with closing(Books(database)) as books:
            books.check()
