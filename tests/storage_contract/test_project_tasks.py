"""Tasks that belong to a project share its fate: they are renamed, deleted and restored with it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dittybag.domain.errors import ProjectGone
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.tasks import Task
from dittybag.services.history_service import UndoSelection
from tests.storage_contract.log_consistency import check_log, stored_entities, without_version
from tests.storage_contract.project_tasks import COMMENTS, change_task, create_project_task, find_task
from tests.storage_contract.store_session import ACTOR, StoreSession, open_session


@pytest.fixture
async def garden(session: StoreSession) -> StoreSession:
    return await open_session(session.store, "garden")


async def found(session: StoreSession, number: int) -> Task:
    task = await find_task(session, number)
    assert task is not None
    return task


async def fill(garden: StoreSession) -> tuple[Task, Task, Task]:
    """Create two tasks of the project, of which one waits for the other, and one that only names it."""
    first = await create_project_task(garden, "Dig", labels=("soil",), comments=COMMENTS, assignee="ann")
    second = await create_project_task(garden, "Sow", blocked_by=(first.id,), parent=first.id, links=("x:y",))
    return first, second, await garden.task("Buy seeds", project="garden")


async def test_the_tasks_of_a_project_are_listed_in_creation_order(
    session: StoreSession, garden: StoreSession
) -> None:
    first, second, _ = await fill(garden)
    await create_project_task(session, "Elsewhere")
    listed = await session.read(lambda transaction: transaction.tasks.in_project(garden.project))
    assert listed == [first, second]


async def test_renaming_a_project_renames_it_in_its_tasks_in_one_batch(garden: StoreSession) -> None:
    first, second, other = await fill(garden)
    projects = garden.workspace.projects
    await projects.rename("garden", "park", actor=ACTOR)
    assert [(await found(garden, task.id)).project for task in (first, second, other)] == [
        "park",
        "park",
        "garden",
    ]
    newest = await garden.newest_change()
    renamed = await garden.read(lambda transaction: transaction.changes.batch(newest.batch))
    assert [change.kind for change in renamed] == ["project", "task", "task"]
    await garden.undo(newest.seq)
    assert (await projects.find("garden")).id == garden.project
    for task in (first, second, other):
        assert replace(await found(garden, task.id), updated_at=0, version=0) == replace(
            task, updated_at=0, version=0
        )
    undone = await garden.newest_change()
    await garden.undo(undone.seq)
    assert (await projects.find("park")).id == garden.project
    assert [(await found(garden, task.id)).project for task in (first, second)] == ["park", "park"]
    await check_log(garden.store)


async def test_a_task_that_is_restored_to_before_a_rename_names_the_project_as_it_is_called_now(
    garden: StoreSession,
) -> None:
    first, *_ = await fill(garden)
    created = (await garden.workspace.history.page(garden.caller, ChangeQuery(kind="task", entity="1")))[0]
    await change_task(garden, first.id, title="Dig deeper")
    await garden.workspace.projects.rename("garden", "park", actor=ACTOR)
    await garden.workspace.history.restore(garden.caller, created.seq)
    task = await found(garden, first.id)
    assert (task.title, task.project, task.project_id) == ("Dig", "park", garden.project)
    assert task.comments == COMMENTS
    await check_log(garden.store)


async def test_deleting_a_project_deletes_its_tasks_and_undo_restores_them(
    session: StoreSession, garden: StoreSession
) -> None:
    first, second, other = await fill(garden)
    await garden.prompt("p")
    before = await stored_entities(session.store)
    await session.workspace.projects.delete("garden", actor=ACTOR)
    assert [await find_task(session, task.id) for task in (first, second)] == [None, None]
    assert await found(session, other.id) == other
    deletion = (await session.workspace.history.page(session.caller, ChangeQuery(limit=1)))[0]
    await session.workspace.history.undo(session.caller, UndoSelection(seq=deletion.seq))
    after = await stored_entities(session.store)
    assert {key: without_version(entity) for key, entity in after.items()} == {
        key: without_version(entity) for key, entity in before.items()
    }
    await check_log(session.store)


async def test_undoing_the_creation_of_a_project_deletes_its_tasks(
    session: StoreSession, garden: StoreSession
) -> None:
    created = (await session.workspace.history.page(session.caller, ChangeQuery(kind="project", limit=1)))[0]
    first, second, other = await fill(garden)
    await session.workspace.history.undo(session.caller, UndoSelection(seq=created.seq))
    assert [await find_task(session, task.id) for task in (first, second)] == [None, None]
    assert await found(session, other.id) == other
    await check_log(session.store, garden.project)


async def test_a_task_is_not_restored_without_its_project(
    session: StoreSession, garden: StoreSession
) -> None:
    first, *_ = await fill(garden)
    history = session.workspace.history
    created = (await history.page(session.caller, ChangeQuery(kind="task", entity=str(first.id))))[-1]
    await session.workspace.projects.delete("garden", actor=ACTOR)
    with pytest.raises(ProjectGone):
        await history.restore(session.caller, created.seq)
    assert await find_task(session, first.id) is None
