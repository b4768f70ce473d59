"""Storage of tasks: lists, pages and counts per user."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.errors import TaskNotFound
from dittybag.domain.queries import TaskQuery
from dittybag.domain.tasks import Task, TaskGroup
from tests.storage_contract.log_consistency import check_log
from tests.storage_contract.store_session import OpenStore, StoreSession, open_session

ODD_TEXT = "1\r\n2\t\x01\u2028 \"'`;-- %_\\ 👩‍👩‍👧 שלום \ufeff\uffff e\u0301 ß İ ς"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"project": "Gärten 🌱", "priority": 5, "energy": "deep", "time_estimate": "½ Tag"},
        {"notes": ODD_TEXT, "due_date": "2026-03-01T17:00:00Z", "priority": 1},
        {"title": "ß" * 500, "project": "p" * 100, "time_estimate": "t" * 50, "notes": "n" * 100_000},
    ],
)
async def test_a_task_is_read_as_it_was_stored(session: StoreSession, fields: dict[str, Any]) -> None:
    task = await session.task(**{"title": "Title \"'%_\\ 👩‍👩‍👧", **fields})
    for field, value in fields.items():
        assert getattr(task, field) == value
    assert (task.version, task.created_at, task.completed) == (1, task.updated_at, False)
    assert await session.workspace.tasks.get(session.caller, task.id) == task
    assert await pages(session, limit=10) == [task]


async def test_an_updated_and_completed_task_is_read_as_it_was_stored(session: StoreSession) -> None:
    first = await session.task("Title", project="p", notes="n", due_date="2026-03-01")
    changed = await session.workspace.tasks.update(
        session.caller, first.id, title="Other", project="", notes="", due_date="", priority=1, energy="light"
    )
    assert changed == replace(
        first,
        title="Other",
        project=None,
        notes=None,
        due_date=None,
        priority=1,
        energy="light",
        updated_at=changed.updated_at,
        version=2,
    )
    done = await session.workspace.tasks.complete(session.caller, first.id)
    assert done == replace(
        changed, completed_at=done.completed_at, updated_at=done.completed_at or 0, version=3
    )
    assert done.completed
    assert await session.workspace.tasks.complete(session.caller, first.id) == done
    assert await session.workspace.tasks.get(session.caller, first.id) == done
    await check_log(session.store)


@pytest.mark.parametrize("id", [0, -1, 2, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**30])
async def test_an_unknown_id_finds_no_task(session: StoreSession, id: int) -> None:
    await session.task("Only one")
    with pytest.raises(TaskNotFound):
        await session.workspace.tasks.get(session.caller, id)
    with pytest.raises(TaskNotFound):
        await session.workspace.tasks.delete(session.caller, id)


async def test_users_see_only_their_own_tasks(session: StoreSession) -> None:
    other = await open_session(session.store, user="other")
    mine = await session.task("needle", project="p")
    theirs = await other.task("needle", project="p")
    assert mine.id != theirs.id
    assert await pages(session, limit=10) == [mine]
    assert await pages(other, limit=10) == [theirs]
    assert await session.workspace.tasks.search(session.caller, "needle") == (1, [mine])
    assert (await session.workspace.tasks.stats(session.caller)).total == 1
    for use_case in (
        session.workspace.tasks.get,
        session.workspace.tasks.complete,
        session.workspace.tasks.delete,
    ):
        with pytest.raises(TaskNotFound):
            await use_case(session.caller, theirs.id)
    with pytest.raises(TaskNotFound):
        await session.workspace.tasks.update(session.caller, theirs.id, title="Mine now")
    assert await other.workspace.tasks.get(other.caller, theirs.id) == theirs
    await check_log(session.store, users=[session.caller.user, "other"])


async def pages(session: StoreSession, limit: int, **filters: Any) -> list[Task]:
    """Return all pages of a list as one list."""
    found: list[Task] = []
    show_completed = filters.pop("completed", True)
    completed = None if show_completed else False
    wanted = TaskQuery(user=session.caller.user, completed=completed, limit=limit, **filters)
    while page := await session.workspace.tasks.page(session.caller, replace(wanted, offset=len(found))):
        assert len(page) <= limit
        found += page
    return found


async def test_lists_are_sorted_by_priority_then_creation(
    session: StoreSession,
) -> None:
    tasks = [
        await session.task(f"t{number}", priority=number % 5 + 1, project=[None, "p", "q"][number % 3])
        for number in range(40)
    ]
    for task in tasks[::4]:
        await session.workspace.tasks.complete(session.caller, task.id)
    moved = await session.workspace.tasks.update(session.caller, tasks[10].id, priority=5)
    assert moved.id < tasks[39].id
    await session.workspace.tasks.delete(session.caller, tasks[7].id)
    tasks = [
        await session.workspace.tasks.get(session.caller, task.id) for task in tasks if task.id != tasks[7].id
    ]
    tasks.sort(key=lambda task: (-task.priority, task.id))
    for project, priority, completed in product((None, "p", "nobody's"), (None, 1, 5), (True, False)):
        expected = [
            task
            for task in tasks
            if (project is None or task.project == project)
            and (priority is None or task.priority == priority)
            and (completed or not task.completed)
        ]
        for limit in (1, 3, 7, 100):
            priorities = () if priority is None else (priority,)
            found = await pages(session, limit, project=project, priorities=priorities, completed=completed)
            assert found == expected


async def test_tasks_are_counted_by_project_and_priority(session: StoreSession) -> None:
    assert await session.read(lambda transaction: transaction.tasks.groups(session.caller.user)) == []
    for project, priority in ((None, 3), ("p", 3), ("p", 3), ("p", 5), ("q", 1)):
        await session.task("t", project=project or "", priority=priority)
    done = await session.task("t", project="p", priority=3)
    await session.workspace.tasks.complete(session.caller, done.id)
    groups = await session.read(lambda transaction: transaction.tasks.groups(session.caller.user))
    assert sorted(groups, key=lambda group: (group.project or "", group.priority)) == [
        TaskGroup(None, 3, 1, 0),
        TaskGroup("p", 3, 3, 1),
        TaskGroup("p", 5, 1, 0),
        TaskGroup("q", 1, 1, 0),
    ]
    stats = await session.workspace.tasks.stats(session.caller)
    assert (stats.by_project, stats.by_priority) == ({None: 1, "p": 4, "q": 1}, {3: 4, 5: 1, 1: 1})
    assert (stats.total, stats.completed) == (6, 1)


async def test_the_id_of_a_deleted_task_is_not_reused(open_store: OpenStore) -> None:
    session = await open_session(await open_store())
    seen: list[int] = []
    for _ in range(2):
        for _ in range(5):
            seen.append((await session.task("t")).id)
            await session.workspace.tasks.delete(session.caller, seen[-1])
        await session.store.close()
        session = await open_session(await open_store())
    assert seen == sorted(set(seen))
