"""Looking at a workspace as pages do: quickly, and only so far."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from dittybag.domain.accounts import Principal
from dittybag.domain.changes import Change, Kind
from dittybag.domain.errors import ChangedMeanwhile, ChangeNotFound, NotAllowed
from dittybag.domain.ports import Transaction
from dittybag.domain.tasks import DEFAULT_USER, Task
from dittybag.services.history_service import ChangeFilter
from dittybag.services.project_overview import ProjectCounts
from tests.storage_contract.backends import Backend
from tests.storage_contract.desk import ACTOR, Desk, desk_at
from tests.storage_contract.ledger import ALL
from tests.storage_contract.things import make

TASKS: tuple[Kind, ...] = ("task",)


def seqs(changes: Iterable[Change]) -> list[int]:
    return [change.seq for change in changes]


def as_user(desk: Desk, user: str, **grant: object) -> Desk:
    """The same desk for somebody with a token."""
    principal = Principal(user, "write", "write")
    return Desk(desk.workspace, replace(desk.caller, user=user, grant=replace(principal, **grant)))


async def furnished(desk: Desk) -> Desk:
    """Another desk; at both there are prompts, a resource and tasks of two users."""
    garden = await desk_at(desk.store, "garden")
    for number in range(4):
        await desk.prompt(f"p{number}")
        await garden.prompt(f"g{number}")
        await desk.task(f"t{number}")
        await as_user(desk, "anna").task(f"anna's {number}")
    await desk.resource("view", "Words", title="ÜBERBLICK")
    await desk.change_prompt("p1", title="überall")
    return garden


async def test_whoever_looks_on_sees_every_change_once(desk: Desk) -> None:
    await furnished(desk)
    history = desk.workspace.history
    for caller in (desk.caller, as_user(desk, DEFAULT_USER).caller):
        expected = seqs(await history.page(caller, limit=ALL))
        found: list[int] = []
        older: int | None = None
        while True:
            look = await history.browse(caller, before=older, limit=3)
            assert len(look.changes) <= 3
            found += seqs(look.changes)
            if (older := look.older) is None:
                break
        assert found == expected
        back: list[int] = []
        newer: int | None = 0
        while newer is not None:
            look = await history.browse(caller, after=newer, limit=3)
            back += reversed(seqs(look.changes))
            newer = look.newer
        assert back == expected[::-1]


async def test_a_look_is_narrowed_by_kind_actor_and_name(desk: Desk) -> None:
    garden = await furnished(desk)
    other = Desk(desk.workspace, replace(desk.caller, actor="cursor"))
    await other.prompt("late")
    history = desk.workspace.history
    everything = await history.page(desk.caller, limit=ALL)

    async def found(**wanted: object) -> list[int]:
        return seqs((await history.browse(desk.caller, replace(ChangeFilter(), **wanted), limit=ALL)).changes)

    assert await found(kind="task") == [change.seq for change in everything if change.kind == "task"]
    assert await found(actor="cursor") == [everything[0].seq]
    assert await found(actor="nobody") == []
    assert len(await found(text="überBLICK")) == 1
    # What it is called now finds the change that gave it the name.
    assert await found(text="ÜBERALL") == [everything[1].seq]
    assert await found(text="%") == []
    assert len(await found(text="g1")) == 0
    assert len(await found(text="g1", all_projects=True)) == 1
    assert len(await found(all_projects=True)) == len(everything) + 5
    actors = await history.actors(desk.caller, ChangeFilter())
    assert actors == sorted({change.actor for change in everything})
    assert "cursor" not in await history.actors(garden.caller, ChangeFilter())


async def test_with_a_token_nothing_foreign_is_seen(desk: Desk) -> None:
    garden = await furnished(desk)
    anna = as_user(desk, "anna")
    history = desk.workspace.history
    look = await history.browse(anna.caller, limit=ALL)
    assert {change.project for change in look.changes} == {None, desk.project}
    tasks = [change.after for change in look.changes if isinstance(change.after, Task)]
    assert {task.user for task in tasks} == {"anna"}
    foreign = [
        (await history.browse(desk.caller, ChangeFilter(text="t3"), limit=1)).changes[0].seq,
        *(change.seq for change in await history.page(garden.caller, kind="prompt", limit=1)),
        10**6,
    ]
    for seq in foreign:
        with pytest.raises(ChangeNotFound):
            await history.get_with_contents(anna.caller, seq)
        with pytest.raises(ChangeNotFound):
            await history.plan_undo(anna.caller, seq)
        with pytest.raises(ChangeNotFound):
            await history.undo_in_any_project(anna.caller, seq, seen=seq)
    with pytest.raises(NotAllowed):
        await history.browse(anna.caller, ChangeFilter(all_projects=True))
    with pytest.raises(NotAllowed):
        await history.actors(anna.caller, ChangeFilter(all_projects=True))
    reader = as_user(desk, "anna", scope="read")
    with pytest.raises(NotAllowed):
        await history.undo_in_any_project(reader.caller, look.changes[0].seq, seen=ALL)


async def test_a_look_says_where_things_are_now(desk: Desk) -> None:
    prompt, resource, task = await desk.prompt("p"), await desk.resource("r"), await desk.task("t")
    await desk.change_resource("r", uri="x:new")
    await desk.prompt("gone")
    await desk.delete_prompt("gone")
    assert (await desk.workspace.history.browse(desk.caller)).addresses == {
        ("project", str(desk.project)): "default",
        ("prompt", prompt.id): prompt.id,
        ("resource", resource.id): "x:new",
        ("task", str(task.id)): str(task.id),
    }


async def test_as_much_is_looked_into_as_holds_so_many_bytes(desk: Desk) -> None:
    for name in ("a", "b", "c"):
        await desk.prompt(name, "x" * 10_000)
    newest = (await desk.newest_change()).seq

    async def window_start(count: int, size: int) -> int:
        return await desk.read(lambda transaction: transaction.changes.window_start(newest + 1, count, size))

    assert await window_start(100, 10**6) == 1
    assert await window_start(2, 10**6) == newest - 1
    assert await window_start(100, 21_000) == newest - 1
    assert await window_start(100, 1) == newest


async def test_large_changes_are_shown_in_smaller_pages(desk: Desk) -> None:
    for number in range(9):
        await desk.prompt(f"p{number}", "x" * 1024 * 1024)
    look = await desk.workspace.history.browse(desk.caller)
    assert 1 < len(look.changes) < 9
    assert look.older == look.changes[-1].seq


async def test_undoing_tells_what_it_will_do_and_that_later_changes_are_new(desk: Desk) -> None:
    garden = await desk_at(desk.store, "garden")
    for number in range(3):
        await garden.prompt(f"g{number}")
    await desk.workspace.projects.delete("garden", actor=ACTOR)
    history = desk.workspace.history
    last = (await history.browse(desk.caller, ChangeFilter(all_projects=True), limit=1)).changes[0]
    plan = await history.plan_undo(desk.caller, last.seq)
    assert (plan.total, len(plan.batch), plan.later, plan.seen) == (4, 4, [], last.seq)
    assert plan.batch[0] == last
    done = await history.undo_in_any_project(desk.caller, last.seq, seen=plan.seen)
    assert seqs(done.changes) == seqs(plan.batch)[::-1]
    assert done.by is not None
    assert len((await history.plan_undo(desk.caller, done.by)).batch) == 4
    # What brought it back was not known when the plan was made.
    with pytest.raises(ChangedMeanwhile):
        await history.undo_in_any_project(desk.caller, last.seq, seen=plan.seen)
    again = await history.plan_undo(desk.caller, last.seq)
    assert len(again.later) == 4
    assert (await history.undo_in_any_project(desk.caller, last.seq, seen=again.seen)).by is None


async def test_usage_is_counted_on_from_where_it_was_counted(desk: Desk) -> None:
    garden = await furnished(desk)
    overview = desk.workspace.overview

    async def today(of: Desk) -> tuple[int, int]:
        usage = await overview.usage(of.caller, ACTOR)
        assert (len(usage.days), usage.since) == (30, None)
        assert not any(day.total for day in usage.days[:-1])
        return usage.days[-1].people, usage.days[-1].agents

    anna = as_user(desk, "anna")
    # Tasks of all are the owner's business; those with a token see their own.
    assert await today(desk) == (4 + 4 + 4 + 2, 0)
    assert await today(anna) == (4 + 4 + 2, 0)
    assert await today(garden) == (1 + 4 + 4 + 4, 0)
    agent = Desk(desk.workspace, replace(desk.caller, actor="claude-code"))
    await agent.prompt("by an agent".replace(" ", "-"))
    await Desk(desk.workspace, replace(desk.caller, actor="anna via web")).task("by hand")
    assert await today(desk) == (15, 1)
    assert await today(desk) == (15, 1)
    assert await today(anna) == (10, 1)
    assert await today(garden) == (14, 0)
    assert await overview.count_contents(desk.caller) == ProjectCounts(5, 1, 5)
    assert await overview.count_contents(anna.caller) == ProjectCounts(5, 1, 4)


async def test_a_glance_finds_titles_first_and_only_what_is_ones_own(desk: Desk) -> None:
    garden = await desk_at(desk.store, "garden")
    await desk.prompt("one", "The Straße is long")
    await desk.prompt("strasse-two", "x", title="Street")
    await desk.prompt("three", "x", title="STRASSE 100%")
    await garden.prompt("strasse")
    await desk.resource("map", "# Straße\n", title="Map")
    await desk.resource("strasse.png", b"\0\1")
    await desk.task("Walk", notes="along the strasse")
    await as_user(desk, "anna").task("strasse")
    search = desk.workspace.search

    async def found(query: str, limit: int = 9, of: Desk = desk) -> list[tuple[str, str]]:
        hits = await search.quick_search(of.caller, query, ("prompt", "resource", "task"), limit)
        return [(hit.kind, hit.title) for hit in hits]

    prompts = [("prompt", "STRASSE 100%"), ("prompt", "Street"), ("prompt", "one")]
    others = [("resource", "strasse.png"), ("resource", "Map"), ("task", "Walk")]
    assert await found("strasse") == prompts + others
    assert await found("straße", 1) == [prompts[0], others[0], others[2]]
    assert await found("0%") == [("prompt", "STRASSE 100%")]
    assert await found("_") == []
    assert await found('"') == []
    assert await found("strasse", of=as_user(desk, "anna")) == [*prompts, *others[:2], ("task", "strasse")]


async def test_a_glance_among_very_many_passes_nobody_over(backend: Backend, desk: Desk) -> None:
    # So many make a difference where one index holds the texts of all.
    count = 5001 if backend.stamps else 50
    rare = await as_user(desk, "anna").task("a needle of Anna's")

    async def many(transaction: Transaction) -> None:
        for number in range(count):
            await make(transaction, "task", desk.project, f"needle {number}")

    await desk.write(many)
    await as_user(desk, "anna").task("the newest needle")
    search = desk.workspace.search
    theirs = await search.quick_search(as_user(desk, "anna").caller, "NEEDLE", TASKS, 9)
    assert [(hit.id, hit.title) for hit in theirs] == [
        (count + 2, "the newest needle"),
        (rare.id, rare.title),
    ]
    ours = await search.quick_search(desk.caller, "needle", TASKS, 9)
    assert len(ours) == 9
    assert all(hit.title.startswith("needle ") for hit in ours)
