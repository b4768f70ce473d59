"""Tasks in a store: lists, pages and counts, for each user apart."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.errors import TaskNotFound
from dittybag.domain.tasks import Task, TaskGroup
from tests.storage_contract.desk import Desk, OpenStore, desk_at
from tests.storage_contract.ledger import check_books

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
async def test_a_task_comes_back_as_it_was_stored(desk: Desk, fields: dict[str, Any]) -> None:
    task = await desk.task(**{"title": "Title \"'%_\\ 👩‍👩‍👧", **fields})
    for field, value in fields.items():
        assert getattr(task, field) == value
    assert (task.version, task.created_at, task.completed) == (1, task.updated_at, False)
    assert await desk.workspace.tasks.get(desk.caller, task.id) == task
    assert await pages(desk, limit=10) == [task]


async def test_an_updated_and_completed_task_comes_back_so(desk: Desk) -> None:
    first = await desk.task("Title", project="p", notes="n", due_date="2026-03-01")
    changed = await desk.workspace.tasks.update(
        desk.caller, first.id, title="Other", project="", notes="", due_date="", priority=1, energy="light"
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
    done = await desk.workspace.tasks.complete(desk.caller, first.id)
    assert done == replace(
        changed, completed_at=done.completed_at, updated_at=done.completed_at or 0, version=3
    )
    assert done.completed
    assert await desk.workspace.tasks.complete(desk.caller, first.id) == done
    assert await desk.workspace.tasks.get(desk.caller, first.id) == done
    await check_books(desk.store)


@pytest.mark.parametrize("id", [0, -1, 2, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**30])
async def test_a_number_that_no_task_has_finds_none(desk: Desk, id: int) -> None:
    await desk.task("Only one")
    with pytest.raises(TaskNotFound):
        await desk.workspace.tasks.get(desk.caller, id)
    with pytest.raises(TaskNotFound):
        await desk.workspace.tasks.delete(desk.caller, id)


async def test_everybody_sees_only_their_own_tasks(desk: Desk) -> None:
    other = await desk_at(desk.store, user="other")
    mine = await desk.task("needle", project="p")
    theirs = await other.task("needle", project="p")
    assert mine.id != theirs.id
    assert await pages(desk, limit=10) == [mine]
    assert await pages(other, limit=10) == [theirs]
    assert await desk.workspace.tasks.search(desk.caller, "needle") == (1, [mine])
    assert (await desk.workspace.tasks.stats(desk.caller)).total == 1
    for use_case in (
        desk.workspace.tasks.get,
        desk.workspace.tasks.complete,
        desk.workspace.tasks.delete,
    ):
        with pytest.raises(TaskNotFound):
            await use_case(desk.caller, theirs.id)
    with pytest.raises(TaskNotFound):
        await desk.workspace.tasks.update(desk.caller, theirs.id, title="Mine now")
    assert await other.workspace.tasks.get(other.caller, theirs.id) == theirs
    await check_books(desk.store, users=[desk.caller.user, "other"])


async def pages(desk: Desk, limit: int, **filters: Any) -> list[Task]:
    """All pages of a list, one after the other."""
    found: list[Task] = []
    wanted = {"project": None, "priority": None, "completed": True, **filters}
    while page := await desk.workspace.tasks.page(desk.caller, limit=limit, offset=len(found), **wanted):
        assert len(page) <= limit
        found += page
    return found


async def test_lists_have_the_highest_priority_first_then_the_order_of_creation(desk: Desk) -> None:
    tasks = [
        await desk.task(f"t{number}", priority=number % 5 + 1, project=[None, "p", "q"][number % 3])
        for number in range(40)
    ]
    for task in tasks[::4]:
        await desk.workspace.tasks.complete(desk.caller, task.id)
    moved = await desk.workspace.tasks.update(desk.caller, tasks[10].id, priority=5)
    assert moved.id < tasks[39].id
    await desk.workspace.tasks.delete(desk.caller, tasks[7].id)
    tasks = [await desk.workspace.tasks.get(desk.caller, task.id) for task in tasks if task.id != tasks[7].id]
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
            found = await pages(desk, limit, project=project, priority=priority, completed=completed)
            assert found == expected


async def test_tasks_are_counted_by_project_and_priority(desk: Desk) -> None:
    assert await desk.read(lambda transaction: transaction.tasks.groups(desk.caller.user)) == []
    for project, priority in ((None, 3), ("p", 3), ("p", 3), ("p", 5), ("q", 1)):
        await desk.task("t", project=project or "", priority=priority)
    done = await desk.task("t", project="p", priority=3)
    await desk.workspace.tasks.complete(desk.caller, done.id)
    groups = await desk.read(lambda transaction: transaction.tasks.groups(desk.caller.user))
    assert sorted(groups, key=lambda group: (group.project or "", group.priority)) == [
        TaskGroup(None, 3, 1, 0),
        TaskGroup("p", 3, 3, 1),
        TaskGroup("p", 5, 1, 0),
        TaskGroup("q", 1, 1, 0),
    ]
    stats = await desk.workspace.tasks.stats(desk.caller)
    assert (stats.by_project, stats.by_priority) == ({None: 1, "p": 4, "q": 1}, {3: 4, 5: 1, 1: 1})
    assert (stats.total, stats.completed) == (6, 1)


async def test_the_number_of_a_deleted_task_never_comes_back(open_store: OpenStore) -> None:
    desk = await desk_at(await open_store())
    seen: list[int] = []
    for _ in range(2):
        for _ in range(5):
            seen.append((await desk.task("t")).id)
            await desk.workspace.tasks.delete(desk.caller, seen[-1])
        await desk.store.close()
        desk = await desk_at(await open_store())
    assert seen == sorted(set(seen))
