"""Purging: content is removed for good, and the change log keeps only that it was purged."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.changes import Change, Purged
from dittybag.domain.entities import Kind
from dittybag.domain.errors import (
    AmbiguousReference,
    ChangePurged,
    DittybagError,
    NothingToPurge,
    ProjectProtected,
)
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import ChangeQuery
from dittybag.exchange.workspace_copy import copy_workspace
from dittybag.services.history_service import UndoSelection
from dittybag.services.purge_references import PurgeReferences
from dittybag.services.purge_service import PurgeItem, Selection
from dittybag.services.search_service import RankedQuery
from dittybag.services.workspace import Workspace
from tests.storage_contract.backends import Backend
from tests.storage_contract.log_consistency import ALL, check_log, stored_entities
from tests.storage_contract.secret_contents import (
    CREATORS,
    SECRET,
    create_prompt,
    create_resource,
    create_task,
    store_sessions,
)
from tests.storage_contract.store_session import ACTOR, OpenStore, StoreSession, open_session

KINDS: tuple[Kind, ...] = ("project", "prompt", "resource", "task")


async def log_of(store: Store) -> list[Change]:
    return await store.read(lambda transaction: transaction.changes.page(ChangeQuery(oldest_first=True)))


async def snapshot(store: Store) -> tuple[Any, ...]:
    """Return everything that a purge may change."""

    async def work(transaction: Transaction) -> list[Any]:
        return [
            await transaction.sessions.get("subscribed"),
            await transaction.pending_purge(),
        ]

    return await log_of(store), await stored_entities(store), await store.read(work)


async def purge(session: StoreSession, kind: Kind, id: str) -> None:
    await session.workspace.purges.run(session.caller, Selection(((kind, id),)))


async def time_now(session: StoreSession) -> int:
    async def work(transaction: Transaction) -> int:
        return transaction.now

    return await session.read(work)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("deleted", [False, True], ids=["current", "deleted"])
async def test_the_log_keeps_only_who_purged_an_entity_and_when(
    session: StoreSession, kind: Kind, deleted: bool
) -> None:
    await session.prompt("kept", "Kept")
    key = await CREATORS[kind](session)
    if deleted:
        created = next(
            item for item in await log_of(session.store) if (item.kind, item.entity) == (kind, key)
        )
        await session.workspace.history.undo(session.caller, UndoSelection(seq=created.seq), seen=ALL)
    before = await log_of(session.store)
    since = await time_now(session)
    await purge(session, kind, key)
    after = await log_of(session.store)
    assert SECRET not in str(after)
    assert SECRET not in str(await stored_entities(session.store))
    concerned = [change for change in after if "kept" not in str(change) and change.seq > 1]
    for change in concerned:
        for state in (change.before, change.after):
            assert state is None or (isinstance(state, Purged) and state.by == ACTOR and state.at >= since)
        assert change.state.version > 0
    # The rest of each row stays, and a current entity is deleted in a change of its own.
    facts = [(item.seq, item.batch, item.at, item.actor, item.action, item.kind, item.entity, item.project)
             for item in after]  # fmt: skip
    assert facts[: len(before)] == [
        (item.seq, item.batch, item.at, item.actor, item.action, item.kind, item.entity, item.project)
        for item in before
    ]
    assert all(item.action == "delete" for item in after[len(before) :])
    assert (len(after) == len(before)) is deleted
    await check_log(session.store, *([int(key)] if kind == "project" else []))


@pytest.mark.parametrize("kind", KINDS)
async def test_undo_and_restore_of_a_purged_change_say_so(session: StoreSession, kind: Kind) -> None:
    key = await CREATORS[kind](session)
    await purge(session, kind, key)
    newest = (await log_of(session.store))[-1].seq
    history, mine = session.workspace.history, session.caller
    for change in await log_of(session.store):
        if (change.kind, change.entity) != (kind, key):
            continue
        here = replace(mine, project=change.project or mine.project)
        for refused in (
            history.undo(here, UndoSelection(seq=change.seq, project=here.project)),
            history.plan_undo(mine, UndoSelection(seq=change.seq)),
            history.undo(mine, UndoSelection(seq=change.seq), seen=newest),
            history.undo(mine, UndoSelection(since=change.at), seen=newest),
            history.restore(here, change.seq, project=here.project),
            history.restore(mine, change.seq),
        ):
            with pytest.raises(ChangePurged, match=rf"change \d+ was purged by {ACTOR} at 20"):
                await refused
    assert (await log_of(session.store))[-1].seq == newest
    with pytest.raises(ChangePurged):
        await purge(session, kind, key)


async def test_changes_that_were_read_before_a_purge_cannot_be_undone(session: StoreSession) -> None:
    key = await create_prompt(session)
    changes = [change for change in await log_of(session.store) if change.entity == key]
    await purge(session, "prompt", key)
    for change in changes:
        with pytest.raises(ChangePurged):
            await session.workspace.history.undo(
                session.caller, UndoSelection(since=change.at), seen=changes[-1].seq
            )
    assert await stored_entities(session.store) != {}
    assert SECRET not in str(await stored_entities(session.store))


# The history


async def purge_histories(session: StoreSession) -> list[PurgeItem]:
    """Purge the history of everything, and keep the current versions."""
    entities = {(change.kind, change.entity): None for change in await log_of(session.store)}
    return await session.workspace.purges.run(session.caller, Selection(tuple(entities), keep_current=True))


async def test_the_history_is_purged_and_the_current_version_stays(session: StoreSession) -> None:
    await session.prompt("kept", "one")
    for content in ("two", "three"):
        await session.change_prompt("kept", content=content)
    await session.prompt("gone", "four")
    await session.delete_prompt("gone")
    await session.prompt("untouched", "five")
    await session.change_prompt("untouched", content="six")
    log, entities = await log_of(session.store), await stored_entities(session.store)
    keys = [next(item.entity for item in log if name in item.label) for name in ("kept", "gone")]
    selection = Selection(tuple(("prompt", key) for key in keys), keep_current=True)
    items = await session.workspace.purges.run(session.caller, selection)
    assert {(item.label, item.deletes, item.versions) for item in items} == {
        ("kept", False, 2),
        ("gone", False, 1),
    }
    assert await stored_entities(session.store) == entities
    await check_log(session.store)
    log = await log_of(session.store)
    assert {word for word in ("one", "two", "three", "four", "five", "six") if f"'{word}'" in str(log)} == {
        "three",
        "five",
        "six",
    }
    assert await session.workspace.purges.run(session.caller, selection) == []
    # What happens from now on can be undone.
    await session.change_prompt("kept", content="seven")
    await session.undo((await session.newest_change()).seq)
    contents = {
        item.content for item in (await stored_entities(session.store)).values() if isinstance(item, Prompt)
    }
    assert contents == {"three", "six"}


# Projects and contents


async def test_a_project_is_purged_with_its_contents_and_the_default_project_stays(
    session: StoreSession,
) -> None:
    key = await CREATORS["project"](session)
    await create_task(session)
    items = await session.workspace.purges.run(session.caller, Selection((("project", key),)))
    assert sorted((item.kind, item.deletes, item.versions) for item in items) == [
        ("project", True, 2),
        ("prompt", False, 1),
        ("prompt", True, 2),
        ("resource", True, 2),
    ]
    # The project of a task is free text.
    assert [kind for kind, _ in await stored_entities(session.store)] == ["project", "task"]
    with pytest.raises(ProjectProtected):
        await purge(session, "project", str(session.project))


async def test_a_content_stays_while_another_resource_or_version_uses_it(session: StoreSession) -> None:
    for name in ("one", "two"):
        await session.resource(name, "shared")
    kept = await session.resource("three", "only")
    one, two = [key for kind, key in await stored_entities(session.store) if kind == "resource"][:2]
    shared = (await session.workspace.resources.get(session.caller, "one")).sha256

    async def has_content(digest: str) -> bool:
        async def work(transaction: Transaction) -> bytes:
            return await transaction.content(digest)

        try:
            return bool(await session.read(work))
        except LookupError:
            return False

    await purge(session, "resource", one)
    assert await has_content(shared)
    await session.delete_resource("two")
    assert await has_content(shared)
    await purge(session, "resource", two)
    assert not await has_content(shared)
    assert await has_content(kept.sha256)


# Traces


async def test_sessions_that_subscribe_to_a_purged_resource_end(session: StoreSession) -> None:
    await store_sessions(session)
    await purge(session, "resource", await create_resource(session))

    async def read(transaction: Transaction) -> list[Any]:
        return [await transaction.sessions.get("subscribed"), await transaction.sessions.get("other")]

    subscribed, other = await session.read(read)
    assert subscribed is None
    assert other is not None


async def test_sessions_that_subscribe_to_a_current_uri_stay(session: StoreSession) -> None:
    await create_task(session)
    await create_resource(session)
    await store_sessions(session)
    await purge_histories(session)

    async def read(transaction: Transaction) -> Any:
        return await transaction.sessions.get("subscribed")

    assert await session.read(read) is not None


# Dry run, interruption


async def test_a_dry_run_changes_nothing(session: StoreSession) -> None:
    ids = {kind: await CREATORS[kind](session) for kind in KINDS}
    await store_sessions(session)
    before = await snapshot(session.store)
    plans = [
        await session.workspace.purges.plan(session.caller, selection)
        for selection in (
            *(Selection((item,)) for item in ids.items()),
            Selection((("prompt", ids["prompt"]),), keep_current=True),
        )
    ]
    assert all(plans)
    assert await snapshot(session.store) == before
    assert (
        await session.workspace.purges.run(session.caller, Selection((("prompt", ids["prompt"]),)))
        == plans[1]
    )


async def test_an_interrupted_purge_is_recorded_until_it_is_finished(session: StoreSession) -> None:
    async def commit_only(transaction: Transaction) -> None:
        await transaction.store_content(SECRET.encode())
        await transaction.record_purge()

    assert not await session.workspace.purges.is_unfinished()
    await session.write(commit_only)
    assert await session.workspace.purges.is_unfinished()
    assert await session.workspace.purges.finish()
    assert not await session.workspace.purges.is_unfinished()
    assert not await session.workspace.purges.finish()


# Other stores


async def test_a_purged_log_is_copied_and_ids_do_not_come_back(
    session: StoreSession, backend: Backend
) -> None:
    for kind in KINDS:
        await CREATORS[kind](session)
        await CREATORS[kind](session, "other")
    await session.prompt("renamed", "one", title="Taken")
    await session.change_prompt("renamed", title="Free")
    await session.prompt("second", "two", title="Taken")
    await session.change_prompt("renamed", title="Third")
    for kind, key in list(await stored_entities(session.store)):
        if kind == "task" or (kind == "project" and int(key) > 2):
            await purge(session, kind, key)
    await purge_histories(session)
    target = await backend.open(backend.new_location())
    try:
        await copy_workspace(session.store, target, lambda *progress: None)
        assert await stored_entities(target) == await stored_entities(session.store)
        assert await log_of(target) == await log_of(session.store)
        copied = await open_session(target)
        for workspace in (session, copied):
            assert (await workspace.task("New")).id == 3
            assert (await workspace.workspace.projects.create("new", actor=ACTOR)).id == 4
            found = await workspace.workspace.search.ranked(workspace.caller, RankedQuery("New"))
            assert [hit.title for hit in found.hits] == ["New"]
    finally:
        await target.close()


async def test_another_process_sees_a_purge_and_nothing_else(
    session: StoreSession, open_store: OpenStore, with_stamps: None
) -> None:
    await session.resource("kept", "Kept")
    key = await create_prompt(session)
    other = await open_store()
    seen: list[Any] = []
    other.subscribe(seen.extend)
    stamps = [other.stamp(kind, session.project) for kind in ("prompt", "resource", "task")]
    await purge(session, "prompt", key)
    after = [other.stamp(kind, session.project) for kind in ("prompt", "resource", "task")]
    assert [old == new for old, new in zip(stamps, after, strict=True)] == [False, True, True]
    assert [item.title for item in await Workspace(other).prompts.listing(session.caller, 0, 10)] == []


# References


@pytest.fixture
async def named(session: StoreSession) -> StoreSession:
    """A prompt and a resource `one`, a deleted and a current prompt of the same name, and a task."""
    garden = await open_session(session.store, "garden")
    await session.prompt("one", "Words", title="The one")
    await session.resource("note", "Words", uri="file:///a:b")
    await garden.resource("one", "Words")
    await session.prompt("deleted", "Words")
    await session.delete_prompt("deleted")
    await session.prompt("deleted", "Words again", title="Another title")
    await session.task("A task")
    return session


@pytest.mark.parametrize(
    ("reference", "kind", "labels"),
    [
        ("The one", None, ["The one"]),
        ("prompt:one", None, ["The one"]),
        ("one", "prompt", ["The one"]),
        ("note", None, ["note"]),
        ("file:///a:b", None, ["note"]),
        ("deleted", None, ["deleted", "Another title"]),
        ("garden", None, ["one", "garden"]),
        ("project:garden", None, ["one", "garden"]),
        ("task:1", None, ["A task"]),
        ("1", "task", ["A task"]),
    ],
)
async def test_references_as_people_type_them(
    named: StoreSession, reference: str, kind: Kind | None, labels: list[str]
) -> None:
    found = await PurgeReferences(named.store).find(reference, kind=kind)
    plan = await named.workspace.purges.plan(named.caller, Selection(found))
    assert sorted(item.label for item in plan) == sorted(labels)


async def test_an_id_names_an_entity(named: StoreSession) -> None:
    key = next(key for kind, key in await stored_entities(named.store) if kind == "prompt")
    assert await PurgeReferences(named.store).find(key.upper()) == (("prompt", key),)


@pytest.mark.parametrize(
    ("reference", "kind", "error"),
    [
        ("one", None, AmbiguousReference),
        ("nothing", None, NothingToPurge),
        ("change:2", None, NothingToPurge),
        ("task:2", None, NothingToPurge),
        ("A task", "task", NothingToPurge),
        ("task:x", None, NothingToPurge),
        ("", None, NothingToPurge),
        ("one", "project", NothingToPurge),
    ],
)
async def test_references_that_name_nothing_or_several_things(
    named: StoreSession, reference: str, kind: Kind | None, error: type[DittybagError]
) -> None:
    with pytest.raises(error):
        await PurgeReferences(named.store).find(reference, kind=kind)
