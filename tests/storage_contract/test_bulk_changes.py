"""Changes of several entities at once: each is one batch, all of them or none, and one undo reverts it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dittybag.domain.accounts import Principal
from dittybag.domain.errors import (
    ChangedMeanwhile,
    ChangeNotFound,
    Invalid,
    NameTaken,
    NotAllowed,
    ProjectNotFound,
    PromptNotFound,
    ResourceNotFound,
    TaskNotFound,
    UriTaken,
)
from dittybag.services.caller import Caller
from dittybag.services.history_service import UndoSelection
from dittybag.services.prompt_service import PromptAddress
from tests.storage_contract.log_consistency import check_log
from tests.storage_contract.store_session import StoreSession, open_session


def named(*names: str) -> list[PromptAddress]:
    return [PromptAddress(name=name) for name in names]


async def test_tags_of_several_prompts_change_as_one(session: StoreSession) -> None:
    prompts = session.workspace.prompts
    await session.prompt("a", tags=["old", "kept"])
    await session.prompt("b")
    await session.prompt("c", tags=["new"])
    marks = await prompts.retag_all(session.caller, named("a", "b", "c", "a"), add=["New"], remove=["old"])
    assert [(mark[0].tags, mark[1]) for mark in marks] == [
        (("kept", "new"), True),
        (("new",), True),
        (("new",), False),
    ]
    await session.undo((await session.newest_change()).seq)
    assert [(await prompts.get(session.caller, item)).tags for item in named("a", "b")] == [
        ("old", "kept"),
        (),
    ]
    with pytest.raises(PromptNotFound):
        await prompts.retag_all(session.caller, named("a", "missing"), add=["x"])
    assert (await prompts.get(session.caller, named("a")[0])).tags == ("old", "kept")
    await check_log(session.store)


async def test_moved_prompts_and_resources_leave_their_project_and_return_by_undo(
    session: StoreSession,
) -> None:
    workspace = session.workspace
    other = await open_session(session.store, "other")
    first = await session.prompt("a", "Text", tags=["x"], title="First")
    await session.prompt("b")
    await other.prompt("taken")
    await session.prompt("taken")
    moved = await workspace.prompts.move_all(session.caller, named("a", "b", "a"), "other")
    assert [(item.name, item.project, item.version) for item in moved] == [
        ("a", other.project, 1),
        ("b", other.project, 1),
    ]
    there = await workspace.prompts.get(other.caller, PromptAddress(name="a"))
    assert (there.content, there.tags, there.title, there.created_at) == (
        "Text",
        ("x",),
        "First",
        first.created_at,
    )
    assert there.id != first.id
    with pytest.raises(PromptNotFound):
        await workspace.prompts.get(session.caller, PromptAddress(id=first.id))
    seq = (await session.newest_change()).seq
    await workspace.history.undo(session.caller, UndoSelection(seq=seq))
    back = await workspace.prompts.get(session.caller, PromptAddress(id=first.id))
    assert replace(back, version=1) == first
    with pytest.raises(PromptNotFound):
        await workspace.prompts.get(other.caller, PromptAddress(name="a"))
    # All or none.
    with pytest.raises(NameTaken):
        await workspace.prompts.move_all(session.caller, named("a", "taken"), "other")
    with pytest.raises(ProjectNotFound):
        await workspace.prompts.move_all(session.caller, named("a"), "missing")
    with pytest.raises(Invalid):
        await workspace.prompts.move_all(session.caller, named("a"), "default")
    resource = await session.resource("r", b"\0\1")
    await session.resource("s")
    await other.resource("t", uri="file:///s")
    with pytest.raises(UriTaken):
        await workspace.resources.move_all(session.caller, ["r", "s"], "other")
    with pytest.raises(ResourceNotFound):
        await workspace.resources.move_all(session.caller, ["r", "missing"], "other")
    [there_too] = await workspace.resources.move_all(session.caller, [resource.uri], "other")
    assert await workspace.resources.read(other.caller, resource.uri) == (there_too, b"\0\1")
    with pytest.raises(ResourceNotFound):
        await workspace.resources.get(session.caller, "r")
    await check_log(session.store)


async def test_moving_needs_the_right_to_change_both_projects(session: StoreSession) -> None:
    workspace = session.workspace
    for user in ("wanda", "rita"):
        await workspace.accounts.add_user(user, actor="tests")
    other = await open_session(session.store, "other")
    await workspace.accounts.share("other", "wanda", "write", actor="tests")
    await workspace.accounts.share("other", "rita", "read", actor="tests")
    wanda, rita, sam = (
        Caller(session.project, user, user, Principal(user, "write", "write"), interface="web")
        for user in ("wanda", "rita", "sam")
    )
    first = await session.prompt("a")
    with pytest.raises(NotAllowed):
        await workspace.prompts.move_all(rita, named("a"), "other")
    with pytest.raises(ProjectNotFound):
        await workspace.prompts.move_all(sam, named("a"), "other")
    with pytest.raises(NotAllowed):
        await workspace.prompts.move_all(
            replace(wanda, principal=Principal("wanda", "write", "read")), named("a"), "other"
        )
    await workspace.prompts.move_all(wanda, named("a"), "other")
    deletion = UndoSelection(seq=(await session.newest_change()).seq, project=session.project)
    for who in (rita, sam):
        with pytest.raises(ChangeNotFound):
            await workspace.history.undo(who, deletion)
    assert (await workspace.prompts.get(other.caller, PromptAddress(name="a"))).id != first.id
    await workspace.history.undo(wanda, deletion)
    assert (await workspace.prompts.get(session.caller, PromptAddress(name="a"))).id == first.id


async def test_several_tasks_change_and_return_as_one(session: StoreSession) -> None:
    tasks, who = session.workspace.tasks, session.caller
    await open_session(session.store, "garden")
    own = await session.task("Own")
    high = await session.task("High", priority=5)
    shared = await tasks.create(who, title="Shared", project="garden")
    ids = [own.id, high.id, shared.id]

    async def newest(number: int) -> int:
        return (await tasks.latest_change(who, number)).seq

    marks = await tasks.update_all(who, [*ids, own.id], priority=5)
    assert [(mark.task.priority, mark.changed) for mark in marks] == [(5, True), (5, False), (5, True)]
    result = await tasks.undo_batch(who, await newest(own.id))
    assert [change.entity for change in result.changes] == [str(own.id), str(shared.id)]
    assert [(await tasks.get(who, number)).priority for number in ids] == [3, 5, 3]
    # An undo can itself be undone.
    assert result.by is not None
    await tasks.undo_batch(who, result.by)
    assert [(await tasks.get(who, number)).priority for number in ids] == [5, 5, 5]
    moved = await tasks.update_all(who, ids, project="garden")
    assert [mark.task.project_id for mark in moved] == [shared.project_id] * 3
    await tasks.delete_all(who, ids)
    deleted = await newest(own.id)
    await tasks.undo_batch(who, deleted)
    assert [(await tasks.get(who, number)).project for number in ids] == ["garden"] * 3
    # All or none.
    for change in (tasks.update_all(who, [own.id, 999], priority=1), tasks.delete_all(who, [own.id, 999])):
        with pytest.raises(TaskNotFound):
            await change
    await tasks.complete_all(who, ids)
    completed = await newest(own.id)
    await tasks.update(who, high.id, title="Higher")
    with pytest.raises(ChangedMeanwhile):
        await tasks.undo_batch(who, completed)
    assert [(await tasks.get(who, number)).completed for number in ids] == [True] * 3
    # Only tasks.
    await session.prompt("a")
    for seq in ((await session.newest_change()).seq, 10**6):
        with pytest.raises(ChangeNotFound):
            await tasks.undo_batch(who, seq)
    await check_log(session.store)
