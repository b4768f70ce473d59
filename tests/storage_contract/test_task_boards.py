"""Boards and filtered lists of tasks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.errors import ChangedMeanwhile, Outdated, TaskNotFound
from dittybag.domain.tasks import ENERGIES, Task, TaskFilter, TaskGrouping, TaskOrder
from tests.storage_contract.log_consistency import check_log
from tests.storage_contract.naive_search import contains_words
from tests.storage_contract.store_session import StoreSession, open_session

DUES = (
    None,
    "2026-02-27",
    "2026-02-28T23:00:00Z",
    "2026-03-01",
    "2026-03-01T09:00",
    "2026-03-01T17:00:00Z",
    "2026-03-01T18:30:00Z",
    "2026-03-02",
    "2026-03-09T00:00:00+02:00",
)
#: The local time zone is one hour ahead of UTC.
NOW = ("2026-03-01T18:00", "2026-03-01T17:00")
OVERDUE = DUES[1:3] + DUES[4:5]

ORDERS: dict[TaskOrder, Callable[[Task], Any]] = {
    "priority": lambda task: (-task.priority, task.id),
    "due": lambda task: (task.due_date is None, task.due_date or "", -task.priority, task.id),
    "newest": lambda task: -task.id,
    "done": lambda task: (-(task.completed_at or 0), -task.id),
}


async def create_samples(session: StoreSession) -> list[Task]:
    """Create various tasks, some of them completed."""
    tasks = []
    for number in range(54):
        task = await session.task(
            f"{'Ärger' if number % 4 == 0 else 'Joy'} {number}",
            project=(None, "p", "q", "ß")[number % 7 % 4],
            priority=number * 7 % 5 + 1,
            energy=ENERGIES[number * 5 % 11 % 3],
            due_date=DUES[number % len(DUES)],
            notes="hidden needle " + "n" * 300 if number % 6 == 0 else None,
        )
        tasks.append(
            await session.workspace.tasks.complete(session.caller, task.id) if number % 3 == 1 else task
        )
    other = await open_session(session.store, user="other")
    await other.task("Joy of others", project="p")
    return tasks


def matches(task: Task, choice: TaskFilter) -> bool:
    day = (task.due_date or "")[:10]
    return (
        task.completed == choice.completed
        and (choice.project is None or (task.project or "") == choice.project)
        and choice.priority in (None, task.priority)
        and choice.energy in (None, task.energy)
        and (choice.due_from is None or day >= choice.due_from)
        and (choice.due_by is None or (day != "" and day <= choice.due_by))
        and (choice.overdue_at is None or task.due_date in OVERDUE)
        and contains_words(choice.text, task.title, task.notes)
    )


CHOICES = (
    TaskFilter(),
    TaskFilter(completed=True),
    TaskFilter(project="p"),
    TaskFilter(project="", priority=3),
    TaskFilter(project="nobody's"),
    TaskFilter(energy="deep", completed=True),
    TaskFilter(due_from="2026-03-01", due_by="2026-03-01"),
    TaskFilter(due_by="2026-03-01", energy="light"),
    TaskFilter(overdue_at=NOW),
    TaskFilter(text="äRGER"),
    TaskFilter(text="y 1", completed=True),
    TaskFilter(text="NEEDLE", project="ß", priority=2),
    TaskFilter(text="e"),
    TaskFilter(text="%"),
)


async def test_lists_have_the_filtered_tasks_in_order(session: StoreSession) -> None:
    tasks = await create_samples(session)
    for choice, order in product(CHOICES, ORDERS):
        expected = [task.id for task in sorted(tasks, key=ORDERS[order]) if matches(task, choice)]
        for limit, offset in ((100, 0), (3, 0), (4, 5), (5, 1000)):
            found = await session.workspace.tasks.listing(
                session.caller, choice, order=order, limit=limit, offset=offset
            )
            got = [task.id for task in found.tasks]
            assert (found.total, got) == (len(expected), expected[offset : offset + limit]), (choice, order)


@pytest.mark.parametrize("by", ["priority", "project", "energy"])
async def test_boards_have_the_first_tasks_of_each_column(session: StoreSession, by: TaskGrouping) -> None:
    tasks = await create_samples(session)
    for choice in CHOICES:
        order: TaskOrder = "done" if choice.completed else "priority"
        chosen = [task for task in sorted(tasks, key=ORDERS[order]) if matches(task, choice)]
        known: dict[str, list[Any]] = {"priority": [5, 4, 3, 2, 1], "energy": ["deep", "medium", "light"]}
        keys = known.get(by, [])
        wanted = getattr(choice, by)
        if wanted is not None:
            keys = [wanted]
        elif by == "project":
            sizes = [task.project or "" for task in chosen]
            keys = sorted(set(sizes), key=lambda name: (-sizes.count(name), name))
        columns = [(key, [task.id for task in chosen if (getattr(task, by) or "") == key]) for key in keys]
        for first, width in ((0, 8), (1, 2), (7, 3)):
            board = await session.workspace.tasks.board(
                session.caller, choice, by, order=order, limit=2, width=width, first=first
            )
            found = [
                (column.key, column.total, [task.id for task in column.tasks]) for column in board.columns
            ]
            assert board.count == len(columns), choice
            assert found == [
                (key, len(numbers), numbers[:2]) for key, numbers in columns[first : first + width]
            ], choice


async def test_a_list_has_only_the_start_of_the_notes(session: StoreSession) -> None:
    task = await session.task("t", project="p", notes="ü" * 1000, due_date="2026-03-01", energy="deep")
    found = await session.workspace.tasks.listing(
        session.caller, TaskFilter(), order="priority", limit=1, offset=0
    )
    [listed] = found.tasks
    assert listed.notes == "ü" * 160
    for name in ("id", "title", "project", "priority", "energy", "time_estimate", "due_date", "version"):
        assert getattr(listed, name) == getattr(task, name)


async def test_an_update_with_an_outdated_version_is_refused(session: StoreSession) -> None:
    task = await session.task("First")
    changed = await session.workspace.tasks.update(session.caller, task.id, version=1, title="Second")
    assert (changed.title, changed.version) == ("Second", 2)
    with pytest.raises(Outdated):
        await session.workspace.tasks.update(session.caller, task.id, version=1, title="Third")
    assert await session.workspace.tasks.get(session.caller, task.id) == changed


async def test_the_latest_change_of_a_task_can_be_undone(session: StoreSession) -> None:
    use = session.workspace.tasks
    first = await session.task("First", notes="n")
    await use.complete(session.caller, first.id)

    async def latest() -> int:
        return (await use.latest_change(session.caller, first.id)).seq

    completed = await latest()
    assert await use.undo_latest(session.caller, first.id, completed) == replace(first, version=3)
    with pytest.raises(ChangedMeanwhile):
        await use.undo_latest(session.caller, first.id, completed)
    await use.delete(session.caller, first.id)
    assert await use.undo_latest(session.caller, first.id, await latest()) == replace(first, version=4)
    # Undoing the undo restores the change.
    assert await use.undo_latest(session.caller, first.id, await latest()) is None
    new = await session.task("New")
    created = await use.latest_change(session.caller, new.id)
    assert await use.undo_latest(session.caller, new.id, created.seq) is None
    other = await open_session(session.store, user="other")
    theirs = await other.task("Theirs")
    change = await other.workspace.tasks.latest_change(other.caller, theirs.id)
    for use_case in (
        use.latest_change(session.caller, theirs.id),
        use.undo_latest(session.caller, theirs.id, change.seq),
    ):
        with pytest.raises(TaskNotFound):
            await use_case
    with pytest.raises(TaskNotFound):
        await use.latest_change(session.caller, 10**9)
    await check_log(session.store, users=[session.caller.user, "other"])
