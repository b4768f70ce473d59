"""Batches of changes: one entry for each, with its true number of changes, and what each actor changed."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dittybag.domain.ports import Transaction
from dittybag.domain.queries import ChangeQuery, PromptQuery
from dittybag.services.caller import Caller, ScopedStore
from dittybag.services.change_batches import BatchEntry, BatchPage
from dittybag.services.history_service import UndoSelection
from dittybag.services.task_service import create_task
from tests.storage_contract.store_session import StoreSession, open_session
from tests.storage_contract.test_history_browsing import as_user

#: More than the changes that are looked up at a time.
MANY = 230


def numbers(page: BatchPage) -> list[int]:
    return [entry.total for entry in page.entries]


def parts(entry: BatchEntry) -> set[tuple[str, str, int]]:
    return {(item.kind, item.action, item.count) for item in entry.counts}


async def newest_seq(session: StoreSession) -> int:
    return await session.read(lambda transaction: transaction.changes.newest_seq())


async def create_tasks(session: StoreSession, count: int, **fields: Any) -> None:
    async def work(transaction: Transaction, caller: Caller) -> None:
        for number in range(count):
            await create_task(transaction, caller, title=f"Task {number}", **fields)

    await ScopedStore(session.store).write(session.caller, work)


async def test_every_batch_is_listed_once_with_its_true_number(session: StoreSession) -> None:
    garden = await open_session(session.store, "garden")
    sizes = [1, MANY, 1, 3, MANY, 2, 1, 1]
    for position, size in enumerate(sizes):
        await create_tasks(session, size)
        await garden.prompt(f"p{position}")
    browse = session.workspace.batches.browse
    query = ChangeQuery(project=session.project, kind="task")
    found: list[int] = []
    older: int | None = None
    pages = 0
    while True:
        page = await browse(session.caller, replace(query, before=older), 3)
        found += numbers(page)
        pages += 1
        if (older := page.older) is None:
            break
    assert found == sizes[::-1]
    assert pages == 3
    back: list[int] = []
    newer: int | None = 0
    while newer is not None:
        page = await browse(session.caller, replace(query, after=newer, oldest_first=True), 3)
        back += numbers(page)[::-1]
        newer = page.newer
    assert back == sizes
    # Cached counts are the same.
    assert numbers(await browse(session.caller, query, 50)) == sizes[::-1]
    # A search for text finds both large batches, and only what is newer than a change.
    with_text = await browse(session.caller, replace(query, text="task 200"), 50)
    assert numbers(with_text) == [MANY, MANY]
    last = max(item.last for item in with_text.entries[0].counts)
    newest = await browse(session.caller, replace(query, after=last), 50)
    assert numbers(newest) == [1, 1, 2]


async def test_an_entry_counts_only_what_the_caller_sees(session: StoreSession) -> None:
    garden = await open_session(session.store, "garden")
    await garden.prompt("one")
    await garden.prompt("two")
    await create_tasks(garden, 3)
    await session.workspace.projects.delete("garden", actor="ann")
    await create_tasks(session, 2)
    anna = as_user(session, "anna")
    await create_tasks(anna, 2, project=None)
    browse = session.workspace.batches.browse
    owner = await browse(session.caller, ChangeQuery(limit=None), 2)
    assert parts(owner.entries[0]) == {("task", "create", 2)}
    deletion = (await browse(session.caller, ChangeQuery(), 3)).entries[2]
    assert deletion.change.actor == "ann"
    assert deletion.total >= 3
    assert ("prompt", "delete", 2) in parts(deletion)
    seen = await browse(anna.caller, ChangeQuery(project=anna.project), 50)
    assert numbers(seen)[0] == 2
    assert all(entry.change.project in (None, anna.project) for entry in seen.entries)


async def test_actors_are_listed_and_their_changes_undone_since_a_change(session: StoreSession) -> None:
    agent, other = (
        StoreSession(session.workspace, replace(session.caller, actor=name, interface="mcp"))
        for name in ("cursor", "codex")
    )
    await agent.prompt("before")
    seen = await newest_seq(session)
    await agent.prompt("after")
    await agent.change_prompt("before", title="Changed")
    await other.prompt("theirs")
    seen_actors = await session.workspace.overview.seen_actors(session.caller)
    assert [(item.actor, item.interface) for item in seen_actors[:2]] == [("codex", "mcp"), ("cursor", "mcp")]
    assert seen_actors[0].last == seen + 3
    selection = UndoSelection(project=session.project, actor="cursor", after=seen)
    result = await session.workspace.history.undo(session.caller, selection, seen=seen + 3)
    assert len(result.changes) == 2
    prompts = await session.workspace.prompts.page(
        session.caller, PromptQuery(project=session.project, limit=9)
    )
    assert {prompt.title for prompt in prompts.prompts} == {"before", "theirs"}
