"""A workload of tasks with unique titles, and clients that remember which writes were acknowledged."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from dittybag.domain.errors import StorageError
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.queries import ChangeQuery, TaskQuery
from dittybag.domain.tasks import Task
from dittybag.storage.sql.entity_rows import quoted
from tests.postgres_servers import PostgresServer

USER = "worker"


async def create_task(store: Store, title: str, *, checked: bool = True) -> Task:
    """Create a task, without or with the lock."""

    async def work(transaction: Transaction) -> Task:
        now = transaction.now
        task = Task(id=0, user=USER, title=title, created_at=now, updated_at=now)
        stored = await transaction.write("create", None, task)
        assert stored is not None
        return stored

    return await store.write(work, actor="worker", checked=checked)


async def count_titles(store: Store) -> Counter[str]:
    """Count the tasks of each title. Asserts that the change log agrees."""

    async def work(transaction: Transaction) -> tuple[list[Task], list[str]]:
        tasks = await transaction.tasks.page(TaskQuery(user=USER))
        log = await transaction.changes.page(ChangeQuery(oldest_first=True))
        assert [change.seq for change in log] == list(range(1, len(log) + 1))
        logged = [change.after.title for change in log if isinstance(change.after, Task)]
        return tasks, logged

    tasks, logged = await store.read(work)
    titles = Counter(task.title for task in tasks)
    assert Counter(logged) == titles
    return titles


def count_stored_titles(server: PostgresServer, schema: str) -> Counter[str]:
    """The same for any number of tasks."""
    log = f"{quoted(schema)}.changes"
    assert server.sql(f"SELECT count(*) = max(seq) FROM {log}") == ["t"]
    titles = Counter(server.sql(f"SELECT title FROM {quoted(schema)}.tasks"))
    assert Counter(server.sql(f"SELECT after::json ->> 'title' FROM {log} WHERE kind = 'task'")) == titles
    return titles


@asynccontextmanager
async def run_clients(stores: Sequence[Store], count: int) -> AsyncIterator[list[WorkloadClient]]:
    """Run `count` clients, spread over the stores, until the end of the block. Every third one locks."""
    clients = [
        WorkloadClient(stores[number % len(stores)], f"w{number}", checked=number % 3 != 0)
        for number in range(count)
    ]
    stop = asyncio.Event()
    work = [asyncio.create_task(client.run(stop)) for client in clients]
    try:
        yield clients
    finally:
        stop.set()
        await asyncio.gather(*work)


class WorkloadClient:
    """A client that creates one task after the other, and remembers which were acknowledged."""

    def __init__(self, store: Store, name: str, *, checked: bool) -> None:
        self.acknowledged: list[str] = []
        self.failed: list[tuple[str, StorageError]] = []
        self._store = store
        self._checked = checked
        self._name = name
        self._number = 0
        #: In seconds.
        self.slowest = 0.0
        self._more = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Create tasks until `stop` is set."""
        while not stop.is_set():
            self._number += 1
            title = f"{self._name}-{self._number}"
            began = time.monotonic()
            try:
                await create_task(self._store, title, checked=self._checked)
            except StorageError as error:
                self.failed.append((title, error))
            else:
                self.acknowledged.append(title)
                self._more.set()
            self.slowest = max(self.slowest, time.monotonic() - began)

    async def wait_for_more(self, count: int) -> None:
        """Wait for `count` more acknowledgements."""
        enough = len(self.acknowledged) + count
        while len(self.acknowledged) < enough:
            self._more.clear()
            await self._more.wait()

    def check(self, titles: Counter[str]) -> None:
        """Assert that acknowledged tasks exist once, and failed ones at most once."""
        assert [title for title in self.acknowledged if titles[title] != 1] == []
        assert [title for title, _ in self.failed if titles[title] > 1] == []
