"""Tasks that belong to a project share its fate: they are renamed, deleted and restored with it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dittybag.domain.accounts import Principal, Role
from dittybag.domain.changes import PURGED_LABEL, Change
from dittybag.domain.errors import NotAllowed, NothingToPurge, ProjectGone, TaskCycle
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.tasks import Task
from dittybag.exchange.workspace_copy import copy_workspace
from dittybag.services.caller import Caller
from dittybag.services.history_service import UndoSelection
from dittybag.services.purge_service import Selection
from tests.storage_contract.backends import Backend
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
    second = await create_project_task(garden, "Sow", blocked_by=(first.id,), links=("x:y",))
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


async def test_a_restored_task_cannot_close_a_cycle(session: StoreSession) -> None:
    first = await session.task("First")
    second = await session.task("Second", blocked_by=(first.id,))
    blocked = await session.newest_change()
    await session.workspace.tasks.update(session.caller, second.id, blocked_by=())
    await session.workspace.tasks.update(session.caller, first.id, blocked_by=(second.id,))
    before = await stored_entities(session.store)
    with pytest.raises(TaskCycle, match="task 2 → task 1 → task 2"):
        await session.workspace.history.restore(session.caller, blocked.seq)
    assert await stored_entities(session.store) == before
    await check_log(session.store)


# Purging


async def log_of_tasks(session: StoreSession) -> list[Change]:
    query = ChangeQuery(kind="task", oldest_first=True)
    return await session.read(lambda transaction: transaction.changes.page(query))


async def test_a_project_is_purged_with_its_tasks_but_not_with_those_that_left_it(
    session: StoreSession, garden: StoreSession
) -> None:
    first, second, other = await fill(garden)
    left = await create_project_task(garden, "Left")
    await change_task(session, left.id, project=None, project_id=None)
    await session.workspace.tasks.delete(garden.caller, second.id)
    items = await session.workspace.purges.run(session.caller, Selection((("project", str(garden.project)),)))
    assert sorted((item.kind, item.id, item.deletes) for item in items) == [
        ("project", str(garden.project), True),
        ("task", str(first.id), True),
        ("task", str(second.id), False),
    ]
    kept = {change.entity for change in await log_of_tasks(session) if not change.purged}
    assert kept == {str(other.id), str(left.id)}
    assert [key for kind, key in await stored_entities(session.store) if kind == "task"] == sorted(kept)
    await check_log(session.store, garden.project)


async def test_the_members_of_a_project_see_that_a_task_was_purged(
    session: StoreSession, garden: StoreSession
) -> None:
    first, *_ = await fill(garden)
    accounts = session.workspace.accounts
    for user in ("ann", "bob"):
        await accounts.add_user(user, actor=ACTOR)
    await accounts.share("garden", "ann", "read", actor=ACTOR)
    await session.workspace.purges.run(session.caller, Selection((("task", str(first.id)),)))
    member = Caller(garden.project, "ann", "ann", Principal("ann", "read", "read"))
    query = ChangeQuery(project=garden.project, kind="task", entity=str(first.id))
    seen = await session.workspace.history.page(member, query)
    assert [(change.action, change.label, change.project) for change in seen] == [
        ("delete", PURGED_LABEL, garden.project),
        ("create", PURGED_LABEL, garden.project),
    ]
    private = ChangeQuery(project=garden.project, kind="task", entity="3")
    assert await session.workspace.history.page(member, private) == []


async def test_a_task_of_a_project_is_purged_by_those_who_may_change_the_project(
    session: StoreSession, garden: StoreSession
) -> None:
    first, second, private = await fill(garden)
    purges = session.workspace.purges
    accounts = session.workspace.accounts
    callers = []
    roles: tuple[tuple[str, Role], ...] = (("ann", "read"), ("bob", "write"))
    for user, role in roles:
        await accounts.add_user(user, actor=ACTOR)
        await accounts.share("garden", user, role, actor=ACTOR)
        callers.append(Caller(garden.project, user, user, Principal(user, "admin", role)))
    reader, writer = callers
    chosen = Selection((("task", str(first.id)),))
    with pytest.raises(NotAllowed):
        await purges.run(reader, chosen)
    with pytest.raises(NothingToPurge):
        await purges.run(writer, Selection((("task", str(private.id)),)))
    with pytest.raises(NothingToPurge):
        await purges.run(replace(writer, project=session.project), chosen)
    await purges.run(writer, chosen)
    assert await find_task(session, first.id) is None
    assert await found(session, second.id) == second


async def test_a_log_with_purged_tasks_of_a_project_is_copied(
    session: StoreSession, garden: StoreSession, backend: Backend
) -> None:
    first, second, _ = await fill(garden)
    await change_task(garden, second.id, labels=("new",))
    await garden.workspace.projects.rename("garden", "park", actor=ACTOR)
    await session.workspace.purges.run(session.caller, Selection((("task", str(first.id)),)))
    chosen = Selection((("task", str(second.id)),), keep_current=True)
    await session.workspace.purges.run(session.caller, chosen)
    target = await backend.open(backend.new_location())
    try:
        await copy_workspace(session.store, target, lambda *progress: None)
        assert await stored_entities(target) == await stored_entities(session.store)
        copied = await open_session(target)
        assert await log_of_tasks(copied) == await log_of_tasks(session)
        await check_log(target)
    finally:
        await target.close()
