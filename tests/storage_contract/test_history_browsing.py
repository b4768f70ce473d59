"""Use cases of the web UI: history pages, undo plans, usage counts and quick search."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.accounts import Principal
from dittybag.domain.changes import Change
from dittybag.domain.errors import ChangedMeanwhile, ChangeNotFound, NotAllowed
from dittybag.domain.ports import Transaction
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.tasks import DEFAULT_USER, Task
from dittybag.services.history_service import UndoSelection
from dittybag.services.search_service import RankedKind, RankedQuery
from tests.storage_contract.backends import Backend
from tests.storage_contract.log_consistency import ALL
from tests.storage_contract.sample_entities import create_entity
from tests.storage_contract.store_session import ACTOR, StoreSession, open_session

TASKS: tuple[RankedKind, ...] = ("task",)


def seqs(changes: Iterable[Change]) -> list[int]:
    return [change.seq for change in changes]


def as_user(session: StoreSession, user: str, **fields: object) -> StoreSession:
    """Return the same session for a user with a token."""
    principal = Principal(user, "write", "write")
    return StoreSession(
        session.workspace, replace(session.caller, user=user, principal=replace(principal, **fields))
    )


async def create_samples(session: StoreSession) -> StoreSession:
    """Create prompts, a resource and tasks of two users. Returns a session in a second project."""
    garden = await open_session(session.store, "garden")
    for number in range(4):
        await session.prompt(f"p{number}")
        await garden.prompt(f"g{number}")
        await session.task(f"t{number}")
        await as_user(session, "anna").task(f"anna's {number}")
    await session.resource("view", "Words", title="ÜBERBLICK")
    await session.change_prompt("p1", title="überall")
    return garden


async def test_paging_through_the_history_shows_every_change_once(session: StoreSession) -> None:
    await create_samples(session)
    history = session.workspace.history
    for caller in (session.caller, as_user(session, DEFAULT_USER).caller):
        expected = seqs(await history.page(caller, ChangeQuery(project=caller.project, limit=ALL)))
        found: list[int] = []
        older: int | None = None
        while True:
            page = await history.browse(caller, ChangeQuery(project=caller.project, before=older, limit=3))
            assert len(page.changes) <= 3
            found += seqs(page.changes)
            if (older := page.older) is None:
                break
        assert found == expected
        back: list[int] = []
        newer: int | None = 0
        while newer is not None:
            page = await history.browse(
                caller, ChangeQuery(project=caller.project, after=newer, oldest_first=True, limit=3)
            )
            back += reversed(seqs(page.changes))
            newer = page.newer
        assert back == expected[::-1]


async def test_changes_are_filtered_by_kind_actor_and_name(session: StoreSession) -> None:
    garden = await create_samples(session)
    other = StoreSession(session.workspace, replace(session.caller, actor="cursor"))
    await other.prompt("late")
    history = session.workspace.history
    everything = await history.page(session.caller, ChangeQuery(project=session.caller.project, limit=ALL))

    async def found(**wanted: Any) -> list[int]:
        query = ChangeQuery(**{"project": session.project, "limit": ALL} | wanted)
        return seqs((await history.browse(session.caller, query)).changes)

    assert await found(kind="task") == [change.seq for change in everything if change.kind == "task"]
    assert await found(actor="cursor") == [everything[0].seq]
    assert await found(actor="nobody") == []
    assert len(await found(text="überBLICK")) == 1
    # The current title finds the change that set it.
    assert await found(text="ÜBERALL") == [everything[1].seq]
    assert await found(text="%") == []
    assert len(await found(text="g1")) == 0
    assert len(await found(text="g1", project=None)) == 1
    assert len(await found(project=None)) == len(everything) + 5
    actors = await history.actors(session.caller, ChangeQuery(project=session.project))
    assert actors == sorted({change.actor for change in everything})
    assert "cursor" not in await history.actors(garden.caller, ChangeQuery(project=garden.project))


async def test_a_user_with_a_token_sees_no_changes_of_others(session: StoreSession) -> None:
    garden = await create_samples(session)
    anna = as_user(session, "anna")
    history = session.workspace.history
    page = await history.browse(anna.caller, ChangeQuery(project=anna.project, limit=ALL))
    assert {change.project for change in page.changes} == {None, session.project}
    tasks = [change.after for change in page.changes if isinstance(change.after, Task)]
    assert {task.user for task in tasks} == {"anna"}
    foreign = [
        (await history.browse(session.caller, ChangeQuery(text="t3", limit=1))).changes[0].seq,
        *(
            change.seq
            for change in await history.page(
                garden.caller, ChangeQuery(project=garden.caller.project, kind="prompt", limit=1)
            )
        ),
        10**6,
    ]
    for seq in foreign:
        with pytest.raises(ChangeNotFound):
            await history.compare(anna.caller, seq)
        with pytest.raises(ChangeNotFound):
            await history.plan_undo(anna.caller, UndoSelection(seq=seq))
        with pytest.raises(ChangeNotFound):
            await history.undo(anna.caller, UndoSelection(seq=seq), seen=seq)
    with pytest.raises(NotAllowed):
        await history.browse(anna.caller, ChangeQuery())
    with pytest.raises(NotAllowed):
        await history.actors(anna.caller, ChangeQuery())
    reader = as_user(session, "anna", scope="read")
    with pytest.raises(NotAllowed):
        await history.undo(reader.caller, UndoSelection(seq=page.changes[0].seq), seen=ALL)


async def test_a_page_has_the_current_addresses_of_entities(session: StoreSession) -> None:
    prompt, resource, task = await session.prompt("p"), await session.resource("r"), await session.task("t")
    await session.change_resource("r", uri="x:new")
    await session.prompt("gone")
    await session.delete_prompt("gone")
    assert (
        await session.workspace.history.browse(session.caller, ChangeQuery(project=session.project))
    ).addresses == {
        ("project", str(session.project)): "default",
        ("prompt", prompt.id): prompt.id,
        ("resource", resource.id): "x:new",
        ("task", str(task.id)): str(task.id),
    }


async def test_the_scanned_window_is_limited_by_count_and_bytes(session: StoreSession) -> None:
    for name in ("a", "b", "c"):
        await session.prompt(name, "x" * 10_000)
    newest = (await session.newest_change()).seq

    async def window_start(count: int, size: int) -> int:
        return await session.read(
            lambda transaction: transaction.changes.window_start(newest + 1, count, size)
        )

    assert await window_start(100, 10**6) == 1
    assert await window_start(2, 10**6) == newest - 1
    assert await window_start(100, 21_000) == newest - 1
    assert await window_start(100, 1) == newest


async def test_pages_of_large_changes_are_smaller(session: StoreSession) -> None:
    for number in range(9):
        await session.prompt(f"p{number}", "x" * 1024 * 1024)
    page = await session.workspace.history.browse(session.caller, ChangeQuery(project=session.project))
    assert 1 < len(page.changes) < 9
    assert page.older == page.changes[-1].seq


async def test_an_undo_plan_lists_its_effects_and_later_changes_make_it_stale(session: StoreSession) -> None:
    garden = await open_session(session.store, "garden")
    for number in range(3):
        await garden.prompt(f"g{number}")
    await session.workspace.projects.delete("garden", actor=ACTOR)
    history = session.workspace.history
    last = (await history.browse(session.caller, ChangeQuery(limit=1))).changes[0]
    plan = await history.plan_undo(session.caller, UndoSelection(seq=last.seq))
    assert (plan.total, len(plan.changes), plan.later, plan.seen) == (4, 4, [], last.seq)
    assert plan.changes[0] == last
    done = await history.undo(session.caller, UndoSelection(seq=last.seq), seen=plan.seen)
    assert seqs(done.changes) == seqs(plan.changes)[::-1]
    assert done.by is not None
    assert len((await history.plan_undo(session.caller, UndoSelection(seq=done.by))).changes) == 4
    # The restoring changes are newer than the plan.
    with pytest.raises(ChangedMeanwhile):
        await history.undo(session.caller, UndoSelection(seq=last.seq), seen=plan.seen)
    again = await history.plan_undo(session.caller, UndoSelection(seq=last.seq))
    assert len(again.later) == 4
    assert (await history.undo(session.caller, UndoSelection(seq=last.seq), seen=again.seen)).by is None


async def test_ranked_search_finds_titles_first_and_only_the_callers_tasks(session: StoreSession) -> None:
    garden = await open_session(session.store, "garden")
    await session.prompt("one", "The Straße is long")
    await session.prompt("strasse-two", "x", title="Street")
    await session.prompt("three", "x", title="STRASSE 100%")
    await garden.prompt("strasse")
    await session.resource("map", "# Straße\n", title="Map")
    await session.resource("strasse.png", b"\0\1")
    await session.task("Walk", notes="along the strasse")
    await as_user(session, "anna").task("strasse")
    search = session.workspace.search

    async def found(query: str, limit: int = 9, of: StoreSession = session) -> list[tuple[str, str]]:
        page = await search.ranked(of.caller, RankedQuery(query, limit=limit, incomplete=True))
        return [(hit.kind, hit.title) for hit in page.hits]

    titles = {("prompt", "STRASSE 100%"), ("prompt", "Street"), ("resource", "strasse.png")}
    others = {("prompt", "one"), ("resource", "Map")}
    hits = await found("strasse")
    assert (set(hits[:3]), set(hits[3:])) == (titles, others | {("task", "Walk")})
    assert len(await found("straße", 1)) == 1
    assert await found("%") == await found('"0%"') == [("prompt", "STRASSE 100%")]
    assert await found("_") == []
    assert await found('"') == []
    theirs = await found("strasse", of=as_user(session, "anna"))
    assert (set(theirs[:4]), set(theirs[4:])) == (titles | {("task", "strasse")}, others)


async def test_ranked_search_finds_a_users_tasks_among_very_many_others(
    backend: Backend, session: StoreSession
) -> None:
    # This many matter where one index holds the texts of all users.
    count = 5001 if backend.stamps else 50
    rare = await as_user(session, "anna").task("a needle of Anna's")

    async def many(transaction: Transaction) -> None:
        for number in range(count):
            await create_entity(transaction, "task", session.project, f"needle {number}")

    await session.write(many)
    await as_user(session, "anna").task("the newest needle")
    search = session.workspace.search
    query = RankedQuery("NEEDLE", TASKS, 9)
    theirs = (await search.ranked(as_user(session, "anna").caller, query)).hits
    assert [(hit.id, hit.title) for hit in theirs] == [
        (count + 2, "the newest needle"),
        (rare.id, rare.title),
    ]
    ours = (await search.ranked(session.caller, query)).hits
    assert len(ours) == 9
    assert all(hit.title.startswith("needle ") for hit in ours)
