"""Databases with many tasks, for measurements of the queue. Each case is one that could make a claim slow."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from dittybag.domain.ports import Store, Transaction
from dittybag.services.caller import Caller
from dittybag.services.task_queue import ClaimRequest
from dittybag.storage.sql.sql_transaction import SqlTransaction

TASKS: Final = 100_000
#: What each task waits for.
EDGES: Final = 3
#: The extra tasks of a case.
MANY: Final = 50_000
FEW: Final = 20

_ROWS_PER_STATEMENT: Final = 500
_COLUMNS: Final = (
    'id, "user", title, priority, energy, time_estimate, created_at, updated_at, completed_at, version, '
    "status, blocked_by, assignee, labels, project, project_id, parent"
)
WORKER: Final = Caller(1, "worker", interface="mcp")


class SampleTask(Struct, frozen=True, kw_only=True):
    """A task, as far as the queue depends on it."""

    priority: int = 3
    status: str = "todo"
    blocked_by: tuple[int, ...] = ()
    assignee: str | None = None
    label: str = ""
    user: str = WORKER.user
    parent: int | None = None
    #: Whether it is claimed, and the claim has lapsed.
    lapsed: bool = False


class Case(Struct, frozen=True):
    """Tasks beside those of the graph, and what is claimed."""

    title: str
    #: Called with the number of the first task.
    extra: Callable[[int], Iterator[SampleTask]]
    request: ClaimRequest = ClaimRequest()


def graph(rng: random.Random) -> Iterator[SampleTask]:
    """Tasks that wait for three earlier ones each. Of those with a low number, most are done."""
    for number in range(1, TASKS + 1):
        blocked_by = {rng.randrange(1, number) for _ in range(EDGES)} if number > EDGES * 10 else set()
        while blocked_by and len(blocked_by) < EDGES:
            blocked_by.add(rng.randrange(1, number))
        is_done = number < TASKS / 5 and rng.random() < 0.9
        yield SampleTask(
            priority=1 if not blocked_by else rng.randint(2, 5),
            status="done" if is_done else "todo",
            blocked_by=tuple(sorted(blocked_by)),
        )


def _many(**fields: Any) -> Callable[[int], Iterator[SampleTask]]:
    """Many tasks of one kind, and a few that are ready after them."""

    def tasks(first: int) -> Iterator[SampleTask]:
        yield from (SampleTask(**{"priority": 5, **fields}) for _ in range(MANY))
        yield from (SampleTask(priority=1, label="few") for _ in range(FEW))

    return tasks


CASES: Final = (
    Case("graph of 300,000 edges", lambda first: iter(())),
    Case("50,000 with high priority are blocked", _many(blocked_by=(TASKS,))),
    Case("50,000 are assigned to others", _many(assignee="other")),
    Case("50,000 are of another user", _many(user="other")),
    Case("50,000 more are done", _many(status="done")),
    Case("50,000 lack the label", _many(), ClaimRequest(labels=("few",))),
    Case("50,000 claims have lapsed", _many(status="doing", assignee="gone", lapsed=True)),
)


#: The tasks of a chain, or of one parent.
LONG: Final = 10_000


def chain() -> list[SampleTask]:
    """Tasks each of which waits for the one before it."""
    return [SampleTask(blocked_by=(number,) if number else ()) for number in range(LONG)]


def parts() -> list[SampleTask]:
    """A task and its parts."""
    return [SampleTask(), *(SampleTask(parent=1) for _ in range(LONG))]


async def fill_case(store: Store, case: Case) -> None:
    """Store the tasks of a case."""
    found = list(graph(random.Random(1)))
    await fill(store, [*found, *case.extra(len(found) + 1)])


async def fill(store: Store, found: list[SampleTask]) -> None:
    """Store tasks, which are numbered from 1 on."""
    for start in range(0, len(found), _ROWS_PER_STATEMENT * 20):
        await _insert(store, found[start : start + _ROWS_PER_STATEMENT * 20], start + 1)


async def _insert(store: Store, tasks: list[SampleTask], first: int) -> None:
    async def work(transaction: Transaction) -> None:
        assert isinstance(transaction, SqlTransaction)
        driver = transaction._tables.driver  # noqa: SLF001  # much faster than single tasks
        for start in range(0, len(tasks), _ROWS_PER_STATEMENT):
            rows = enumerate(tasks[start : start + _ROWS_PER_STATEMENT], first + start)
            values = ", ".join(
                _row(number, task, is_json=driver.list_value([]) == "[]") for number, task in rows
            )
            await driver.run(f"INSERT INTO tasks ({_COLUMNS}) VALUES {values}")
        claims = [
            f"({number}, 1, 'gone', '', 1, 1, {time.time_ns() // 1000 - number})"
            for number, task in enumerate(tasks, first)
            if task.lapsed
        ]
        if claims:
            await driver.run(f"INSERT INTO claims VALUES {', '.join(claims)}")

    await store.write(work, actor="benchmark")


def _row(number: int, task: SampleTask, *, is_json: bool) -> str:
    """Return the values of a task as SQL."""
    labels = json.dumps([task.label] if task.label else []) if is_json else f"{{{task.label}}}"
    completed = "1" if task.status == "done" else "NULL"
    assignee = "NULL" if task.assignee is None else f"'{task.assignee}'"
    parent = "NULL" if task.parent is None else str(task.parent)
    return (
        f"({number}, '{task.user}', 'Task {number}', {task.priority}, 'medium', '1hr', 1, 1, {completed}, 1, "
        f"'{task.status}', '{json.dumps(task.blocked_by)}', {assignee}, '{labels}', NULL, NULL, {parent})"
    )
