"""Queries on the change log: every condition narrows the result, in every combination."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.changes import Change
from dittybag.domain.ports import Transaction
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.text import fold
from tests.storage_contract.store_session import StoreSession, open_session

CONDITIONS = (
    *("project", "kind", "entity", "name", "text", "actor", "since", "user"),
    *("after", "before", "limit", "oldest_first"),
)
PAIRS = tuple(combinations(CONDITIONS, 2))


async def change_as(session: StoreSession, actor: str, title: str) -> None:
    caller = replace(session.caller, actor=actor)
    await StoreSession(session.workspace, caller).change_prompt("p", title=title)


async def create_log(session: StoreSession) -> list[Change]:
    """Create changes of several projects, kinds, entities, actors and users. Returns the whole log."""
    garden = await open_session(session.store, "garden", "anna")
    await session.prompt("p", title="Plan")
    for number, actor in enumerate(("ann", "bob", "ann", "bob", "bob", "ann")):
        await change_as(session, actor, f"Plan {number}")
    await session.prompt("other", title="Plan")
    await session.resource("r", title="A plan")
    await garden.prompt("p", title="Garden")
    for number in range(2):
        await session.task(f"t{number}")
        await garden.task(f"g{number}")
    await session.delete_prompt("p")
    await session.undo((await session.newest_change()).seq)
    return await session.read(lambda transaction: transaction.changes.page(ChangeQuery(oldest_first=True)))


def names(change: Change) -> set[str]:
    """Return the names, titles and URIs before and after a change."""
    states = (change.before, change.after)
    found = (getattr(state, field, None) for state in states for field in ("name", "title", "uri"))
    return {name for name in found if name}


def expected(log: list[Change], query: ChangeQuery) -> list[Change]:
    """Select changes of the whole log without a database."""
    named = {(change.kind, change.entity) for change in log if query.name in names(change)}
    found = [
        change
        for change in log
        if (query.project is None or change.project in (None, query.project))
        and query.kind in (None, change.kind)
        and query.entity in (None, change.entity)
        and (query.name is None or (change.kind, change.entity) in named)
        and (query.text is None or any(fold(query.text) in fold(name) for name in names(change)))
        and query.actor in (None, change.actor)
        and (query.since is None or change.at >= query.since)
        and (query.user is None or getattr(change.state, "user", query.user) == query.user)
        and query.after < change.seq
        and (query.before is None or change.seq < query.before)
    ]
    return (found if query.oldest_first else found[::-1])[: query.limit]


@pytest.fixture
async def log(session: StoreSession) -> list[Change]:
    return await create_log(session)


def conditions(session: StoreSession, log: list[Change]) -> dict[str, Any]:
    """Return a value for each condition."""
    prompt = next(change.entity for change in log if change.kind == "prompt")
    times = sorted(change.at for change in log)
    values = {
        "project": session.project,
        "kind": "prompt",
        "entity": prompt,
        "name": "Plan",
        "text": "PLAN ",
        "actor": "bob",
        "since": times[len(times) // 3],
        "user": "anna",
        "after": 4,
        "before": len(log) - 2,
        "limit": 2,
        "oldest_first": True,
    }
    assert tuple(values) == CONDITIONS
    return values


@pytest.mark.parametrize("first", CONDITIONS[:-1])
async def test_each_pair_of_conditions_narrows_the_changes(
    session: StoreSession, log: list[Change], first: str
) -> None:
    values = conditions(session, log)

    async def look(transaction: Transaction) -> None:
        for one, other in PAIRS:
            if one != first:
                continue
            query = ChangeQuery(**{name: values[name] for name in (one, other)})
            wanted = expected(log, query)
            changes = transaction.changes
            assert await changes.page(query) == wanted, (one, other)
            assert [seq for seq, _ in await changes.find_seqs(query)] == [item.seq for item in wanted]
            everything = expected(log, replace(query, limit=None))
            assert await changes.actors(query) == sorted({item.actor for item in everything})[: query.limit]

    await session.read(look)


async def test_all_conditions_together_narrow_the_changes(session: StoreSession, log: list[Change]) -> None:
    query = ChangeQuery(**{**conditions(session, log), "user": session.caller.user})
    wanted = expected(log, query)
    assert len(wanted) == 2
    assert await session.read(lambda transaction: transaction.changes.page(query)) == wanted
