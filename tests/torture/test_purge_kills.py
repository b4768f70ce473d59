"""SIGKILL during purges: each is done wholly or not at all, and if acknowledged, leaves no byte behind."""

from __future__ import annotations

import random
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest
from msgspec import Struct

from dittybag.assembly.store_factory import open_store
from dittybag.domain.changes import Purged
from dittybag.domain.entities import Kind
from dittybag.domain.ports import Store
from dittybag.domain.queries import ChangeQuery
from dittybag.services.purge_service import Selection
from tests.forked_processes import ForkedProcess
from tests.postgres_servers import run_postgres
from tests.repetitions import SEED, repetitions
from tests.storage_contract.log_consistency import check_log, stored_entities
from tests.storage_contract.secret_contents import CREATORS
from tests.storage_contract.store_session import StoreSession, open_session
from tests.torture.sqlite_audit import SqliteAudit

PURGES = repetitions(24, 1000)
KILLS = repetitions(8, 200)

KINDS: tuple[Kind, ...] = ("prompt", "resource", "task", "project")


class Database(Struct, frozen=True):
    """A database under test."""

    location: str
    #: Returns whether any file of it contains a text.
    contains: Callable[[bytes], bool]
    #: Checks its structure.
    audit: Callable[[], None]


@contextmanager
def sqlite_database(folder: Path) -> Iterator[Database]:
    path = folder / "store.db"

    def audit() -> None:
        with closing(SqliteAudit(path)) as found:
            found.check()

    yield Database(
        str(path), lambda text: any(text in file.read_bytes().lower() for file in folder.iterdir()), audit
    )


@contextmanager
def postgres_database(folder: Path) -> Iterator[Database]:
    with run_postgres("bundled") as server:
        yield Database(server.url(schema="purged"), lambda text: bool(server.files_with(text)), lambda: None)


DATABASES = {"sqlite": sqlite_database, "postgres": postgres_database}


class PurgingProcess:
    """A child process that purges."""

    def __init__(self, database: Database) -> None:
        self._process = ForkedProcess(
            *("tests.torture.purging_process", database.location),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.reply(60) == b"ready\n"

    def send(self, selection: Selection) -> None:
        stream = _pipe(self._process.stdin)
        stream.write(msgspec.json.encode(selection) + b"\n")
        stream.flush()

    def reply(self, seconds: float) -> bytes | None:
        """Return the next line of output, or `None` after `seconds`."""
        stream = _pipe(self._process.stdout)
        return stream.readline() if select.select([stream], [], [], seconds)[0] else None

    def kill(self) -> bool:
        """Kill the process. Returns whether it had acknowledged the purge."""
        self._process.kill()
        output, _ = self._process.communicate()
        return b"purged" in output


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


class Victims:
    """Entities to purge, each with a word of its own, and what is known about each."""

    def __init__(self, session: StoreSession, rng: random.Random) -> None:
        self._session = session
        self._rng = rng
        self._count = 0
        self.kept: dict[str, tuple[Kind, str]] = {}
        self.purged: dict[str, tuple[Kind, str]] = {}

    async def create(self) -> tuple[str, tuple[Kind, str]]:
        """Create an entity, and one that stays. Returns its word and key."""
        self._count += 1
        kind = self._rng.choice(KINDS)
        for word in (f"qzxkept{self._count:05}x", f"qzxgone{self._count:05}x"):
            key = kind, str(await CREATORS[kind](self._session, word))
            self.kept[word] = key
        return word, key

    async def current(self) -> set[tuple[Kind, str]]:
        return set(await stored_entities(self._session.store))

    async def settle(self, word: str) -> bool:
        """Record whether an entity was purged. A purge is wholly done or not at all."""
        key = self.kept[word]
        exists = key in await self.current()
        states = [
            change.state for change in await _log(self._session.store) if (change.kind, change.entity) == key
        ]
        assert {isinstance(state, Purged) for state in states} == {not exists}
        if not exists:
            self.purged[word] = self.kept.pop(word)
        return not exists


async def _log(store: Store) -> list[Any]:
    return await store.read(lambda transaction: transaction.changes.page(ChangeQuery(oldest_first=True)))


@pytest.mark.timeout(300 + 3 * PURGES)
@pytest.mark.parametrize("name", DATABASES)
async def test_purges_under_kills_leave_the_store_consistent(tmp_path: Path, name: str) -> None:
    rng = random.Random(SEED)
    # The first purge shows how long one takes.
    killed_in = set(rng.sample(range(1, PURGES), KILLS))
    interrupted = 0
    last_seconds = 0.0
    with DATABASES[name](tmp_path) as database:
        store = await open_store(database.location)
        victims = Victims(await open_session(store), rng)
        process = PurgingProcess(database)
        for number in range(PURGES):
            word, key = await victims.create()
            process.send(Selection((key,)))
            if number not in killed_in:
                since = time.monotonic()
                assert process.reply(60) == b"purged\n"
                last_seconds = time.monotonic() - since
                assert await victims.settle(word)
                continue
            early = process.reply(rng.uniform(0, last_seconds)) is not None
            acknowledged = process.kill() or early
            assert await victims.settle(word) or not acknowledged
            interrupted += not acknowledged
            database.audit()
            await check_log(store, *_deleted_projects(victims))
            process = PurgingProcess(database)
        process.kill()
        await check_log(store, *_deleted_projects(victims))
        database.audit()
        # A process that was killed has left no byte either: the next one has finished its purge.
        for word in victims.purged:
            assert not database.contains(word.encode()), word
        for word in rng.sample(sorted(victims.kept), 5):
            assert database.contains(word.encode()), word
        await store.close()
    assert interrupted > KILLS / 8, "the processes must be killed before they have finished"


def _deleted_projects(victims: Victims) -> list[int]:
    return [int(key) for kind, key in victims.purged.values() if kind == "project"]


@pytest.mark.timeout(300)
async def test_histories_are_purged_under_kills_and_again_until_done(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    with sqlite_database(tmp_path) as database:
        store = await open_store(database.location)
        session = await open_session(store)
        for number in range(40):
            await CREATORS[KINDS[number % 4]](session, f"qzxold{number:03}x")
        before = await stored_entities(store)
        histories = Selection(tuple(before), keep_current=True)
        for _ in range(max(3, KILLS // 2)):
            process = PurgingProcess(database)
            process.send(histories)
            process.reply(rng.uniform(0, 0.12))
            process.kill()
            database.audit()
            assert await stored_entities(store) == before
        process = PurgingProcess(database)
        process.send(histories)
        assert process.reply(60) == b"purged\n"
        process.kill()
        database.audit()
        await check_log(store)
        assert not database.contains(b"project-qzxold")
        await store.close()
