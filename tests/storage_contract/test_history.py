"""Undo and restore: deleted and overwritten entities are restored byte for byte."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import Purged
from dittybag.domain.entities import Entity, Kind
from dittybag.domain.errors import (
    ChangeNotFound,
    DittybagError,
    NameTaken,
    ProjectGone,
    ProjectProtected,
    TitleTaken,
    UriTaken,
)
from dittybag.domain.ports import Transaction
from dittybag.domain.prompts import Argument
from dittybag.domain.queries import ChangeQuery, PromptQuery, TaskQuery
from dittybag.domain.resources import Resource
from dittybag.services.search_service import RankedQuery
from tests.storage_contract.log_consistency import (
    EntitiesByKey,
    check_log,
    read_log,
    stored_entities,
    without_version,
)
from tests.storage_contract.sample_entities import create_entity
from tests.storage_contract.store_session import ACTOR, StoreSession, open_session

EVERY_BYTE = bytes(range(256))
ODD_TEXT = "Zeile 1\r\n\t\x01\x7f\u2028 \"'`;-- %_\\ 👩‍👩‍👧 \ufeff\uffff e\u0301 ß İ ς"
GARDEN = 2


async def create_samples(session: StoreSession) -> None:
    """Create entities of every kind, here and in the project `garden`, with all fields set."""
    garden = await open_session(session.store, "garden")
    assert garden.project == GARDEN
    for place in (session, garden):
        await place.prompt(
            "prompt",
            ODD_TEXT,
            title='Title "%_',
            description=ODD_TEXT,
            tags=["b", "a"],
            arguments=[Argument(name="x", description="ä", required=True, choices=("1", "ß"))],
        )
        await place.prompt("second", tags=["a"])
        await place.resource("text", ODD_TEXT, title="T", description=ODD_TEXT, mime_type="text/markdown")
        await place.resource("binary", EVERY_BYTE, mime_type="image/png", description="d")
        await place.resource("template", "Hello", uri="x:{name}")
        await place.resource("empty", "")
    await session.task(
        "task",
        project="garden",
        priority=5,
        energy="deep",
        time_estimate="½",
        notes=ODD_TEXT,
        due_date="2026-03-01",
    )
    done = await session.task("done")
    await session.workspace.tasks.complete(session.caller, done.id)


async def contents(session: StoreSession, held: EntitiesByKey) -> dict[str, bytes]:
    """Return the contents of all resources by id."""
    return {
        entity.id: await session.content(entity) for entity in held.values() if isinstance(entity, Resource)
    }


def without_versions(held: EntitiesByKey) -> dict[tuple[Kind, str], Entity | Purged | None]:
    return {key: without_version(entity) for key, entity in held.items()}


async def _delete_project(session: StoreSession) -> object:
    return await session.workspace.projects.delete("garden", actor=ACTOR)


async def _rename_project(session: StoreSession) -> object:
    return await session.workspace.projects.rename("garden", "park", actor=ACTOR)


async def _delete_task(session: StoreSession) -> object:
    return await session.workspace.tasks.delete(session.caller, 1)


async def _overwrite_task(session: StoreSession) -> object:
    return await session.workspace.tasks.update(
        session.caller, 1, title="x", project="", notes="", due_date="", priority=1
    )


async def _overwrite_prompt(session: StoreSession) -> object:
    return await session.change_prompt(
        "prompt", title="x", content="x", description="", tags=("c",), arguments=()
    )


async def _several_at_once(session: StoreSession) -> object:
    async def work(transaction: Transaction) -> None:
        for prompt in await transaction.prompts.in_project(session.project):
            await transaction.write("delete", prompt, None)
        for resource in await transaction.resources.listing(session.project):
            await transaction.write("update", resource, replace(resource, title="x", version=2))
        await create_entity(transaction, "task", session.project, "new")

    return await session.write(work)


Operation = Callable[[StoreSession], Awaitable[object]]

#: The operations and the projects they change.
OPERATIONS: dict[str, tuple[int, Operation]] = {
    "delete a project with contents": (GARDEN, _delete_project),
    "rename a project": (GARDEN, _rename_project),
    "create a project": (3, lambda session: session.workspace.projects.create("new", actor=ACTOR)),
    "delete a prompt": (1, lambda session: session.delete_prompt("prompt")),
    "overwrite a prompt": (1, _overwrite_prompt),
    "create a prompt": (1, lambda session: session.prompt("new", tags=["a"])),
    "delete a text": (1, lambda session: session.delete_resource("text")),
    "overwrite a text": (
        1,
        lambda session: session.change_resource("text", content="x", title="", description=""),
    ),
    "delete bytes": (1, lambda session: session.delete_resource("binary")),
    "overwrite bytes": (
        1,
        lambda session: session.change_resource("binary", content="", mime_type="text/plain"),
    ),
    "delete an empty one": (1, lambda session: session.delete_resource("empty")),
    "delete a template": (1, lambda session: session.delete_resource("template")),
    "create a resource": (1, lambda session: session.resource("new", EVERY_BYTE)),
    "delete a task": (1, _delete_task),
    "overwrite a task": (1, _overwrite_task),
    "complete a task": (1, lambda session: session.workspace.tasks.complete(session.caller, 1)),
    "create a task": (1, lambda session: session.task("new")),
    "several at once": (1, _several_at_once),
}

operations = pytest.mark.parametrize(("where", "operation"), OPERATIONS.values(), ids=list(OPERATIONS))


def in_project(session: StoreSession, project: int) -> StoreSession:
    """Return the same session in another project, which need not exist."""
    return StoreSession(session.workspace, replace(session.caller, project=project))


@operations
async def test_undo_restores_every_byte_and_can_itself_be_undone(
    session: StoreSession, where: int, operation: Operation
) -> None:
    await create_samples(session)
    here = in_project(session, where)
    before = await stored_entities(session.store)
    bytes_before = await contents(session, before)
    await operation(session)
    after = await stored_entities(session.store)
    bytes_after = await contents(session, after)
    assert without_versions(after) != without_versions(before)

    states = [(before, bytes_before), (after, bytes_after)] * 2
    for wanted, wanted_bytes in states:
        newest = (await read_log(session.store, [where]))[-1]
        undone = await here.undo(newest.seq)
        assert {change.batch for change in undone} == {newest.batch}
        now = await stored_entities(session.store)
        assert without_versions(now) == without_versions(wanted)
        assert await contents(session, now) == wanted_bytes
        await check_log(session.store, GARDEN, 3)


@operations
async def test_any_change_of_a_batch_undoes_the_whole_batch(
    session: StoreSession, where: int, operation: Operation
) -> None:
    await create_samples(session)
    here = in_project(session, where)
    before = await stored_entities(session.store)
    newest = await read_log(session.store, [where])
    await operation(session)
    added = (await read_log(session.store, [where]))[len(newest) :]
    undone = await here.undo(added[0].seq)
    assert undone == added
    assert without_versions(await stored_entities(session.store)) == without_versions(before)
    logged = (await read_log(session.store, [where]))[len(newest) + len(added) :]
    assert {change.action for change in logged} <= {"restore", "delete"}
    assert [(without_version(change.before), without_version(change.after)) for change in logged] == [
        (without_version(change.after), without_version(change.before)) for change in reversed(added)
    ]


@pytest.mark.parametrize(
    ("kind", "label", "operation"),
    [
        ("project", "garden", _delete_project),
        ("project", "garden", _rename_project),
        ("prompt", "prompt", lambda session: session.delete_prompt("prompt")),
        ("prompt", "prompt", _overwrite_prompt),
        ("resource", "text", lambda session: session.delete_resource("text")),
        ("resource", "text", lambda session: session.change_resource("text", content="x")),
        ("resource", "binary", lambda session: session.delete_resource("binary")),
        ("resource", "binary", lambda session: session.change_resource("binary", content="")),
        ("task", "task", _delete_task),
        ("task", "task", _overwrite_task),
    ],
)
async def test_an_entity_is_restored_to_its_state_after_any_of_its_changes(
    session: StoreSession, kind: Kind, label: str, operation: Operation
) -> None:
    await create_samples(session)
    here = in_project(session, GARDEN if kind == "project" else session.project)
    (made,) = [
        change
        for change in await read_log(session.store, [here.project])
        if change.kind == kind
        and label in (getattr(change.after, "name", ""), getattr(change.after, "title", ""))
    ]
    await operation(session)
    changed = (
        await here.workspace.history.page(
            here.caller, ChangeQuery(project=here.caller.project, kind=kind, entity=made.entity)
        )
    )[0]
    assert changed.seq > made.seq

    for wanted in (made, changed, made, made):
        restored = await here.workspace.history.restore(here.caller, wanted.seq, project=here.caller.project)
        assert without_version(restored) == without_version(wanted.after)
        held = await stored_entities(session.store)
        assert held.get((kind, made.entity)) == restored
        if isinstance(restored, Resource):
            expected = EVERY_BYTE if label == "binary" else ODD_TEXT.encode()
            assert (await session.content(restored) == expected) is (wanted is made)
        await check_log(session.store, GARDEN)
    # The last restore found the entity in the wanted state already.
    history = await here.workspace.history.page(
        here.caller, ChangeQuery(project=here.caller.project, kind=kind, entity=made.entity)
    )
    versions = [(change.after or change.before).version for change in history]  # type: ignore[union-attr]
    assert [change.action for change in history[:3]] == ["restore"] * 3
    assert versions == sorted(versions, reverse=True)


async def test_a_restored_project_is_empty_until_its_contents_are_restored(session: StoreSession) -> None:
    await create_samples(session)
    garden = in_project(session, GARDEN)
    before = await stored_entities(session.store)
    made = [change for change in await read_log(session.store, [GARDEN]) if change.project == GARDEN]
    await _delete_project(session)
    with pytest.raises(ProjectGone):
        await garden.workspace.history.restore(garden.caller, made[1].seq, project=garden.caller.project)
    await garden.workspace.history.restore(garden.caller, made[0].seq, project=garden.caller.project)
    assert await garden.read(lambda transaction: transaction.prompts.in_project(GARDEN)) == []
    for change in made[1:]:
        await garden.workspace.history.restore(garden.caller, change.seq, project=garden.caller.project)
    assert without_versions(await stored_entities(session.store)) == without_versions(before)
    await check_log(session.store)


async def test_undoing_an_old_change_overwrites_later_changes_and_can_be_undone(
    session: StoreSession,
) -> None:
    await session.prompt("p", "one")
    second = await session.change_prompt("p", content="two", tags=("t",))
    change = await session.newest_change()
    await session.change_prompt("p", content="three")
    await session.change_prompt("p", title="Four")
    latest = await session.change_prompt("p", content="five")
    await session.undo(change.seq)
    found = await session.read(lambda transaction: transaction.prompts.by_name(session.project, "p"))
    assert found is not None
    assert (found.content, found.title, found.tags) == ("one", "p", ())
    assert found.version == latest.version + 1 > second.version
    await session.undo((await session.newest_change()).seq)
    found = await session.read(lambda transaction: transaction.prompts.by_name(session.project, "p"))
    assert without_version(found) == without_version(latest)
    await check_log(session.store)


async def test_a_restored_entity_is_found_in_all_views(session: StoreSession) -> None:
    """Lists, pages, tags and searches."""
    await create_samples(session)

    async def views() -> list[Any]:
        prompts, resources, tasks = (
            session.workspace.prompts,
            session.workspace.resources,
            session.workspace.tasks,
        )
        return [
            await prompts.listing(session.caller, 0, 100),
            await prompts.page(
                session.caller, PromptQuery(project=session.caller.project, limit=100, offset=0)
            ),
            await prompts.by_tags(session.caller, ["a", "b"], 100, 0),
            await prompts.tags(session.caller),
            await prompts.page(
                session.caller,
                PromptQuery(project=session.caller.project, text="👩‍👩‍👧", limit=100, offset=0),
            ),
            [r.id for r in await resources.listing(session.caller, 0, 100, templates=False)],
            [r.id for r in await resources.templates(session.caller)],
            await resources.uris(session.caller, "", 100),
            [t.id for t in await tasks.page(session.caller, TaskQuery(user=session.caller.user, limit=100))],
            [
                (hit.ref, hit.passage)
                for hit in (
                    await session.workspace.search.ranked(session.caller, RankedQuery("ZEILE 1"))
                ).hits
            ],
        ]

    before = await views()
    await session.delete_prompt("prompt")
    await session.delete_resource("text")
    await session.delete_resource("template")
    await _overwrite_task(session)
    assert await views() != before
    for change in await session.workspace.history.page(
        session.caller, ChangeQuery(project=session.caller.project, limit=4)
    ):
        await session.undo(change.seq)
    assert await views() == before


class NameConflict(Struct, frozen=True):
    """An entity loses its name, title or URI, and another one takes it."""

    where: int
    kind: Kind
    name: str
    go: Operation
    take: Operation
    error: type[DittybagError]


def _new_garden(session: StoreSession) -> Awaitable[object]:
    return session.workspace.projects.create("garden", actor=ACTOR)


CONFLICTS = {
    "a deleted project's name": NameConflict(
        GARDEN, "project", "garden", _delete_project, _new_garden, NameTaken
    ),
    "a renamed project's name": NameConflict(
        GARDEN, "project", "garden", _rename_project, _new_garden, NameTaken
    ),
    "a prompt's name": NameConflict(
        1,
        "prompt",
        "second",
        lambda session: session.delete_prompt("second"),
        lambda session: session.prompt("second", title="free"),
        NameTaken,
    ),
    "a prompt's title": NameConflict(
        1,
        "prompt",
        "second",
        lambda session: session.change_prompt("second", title="other"),
        lambda session: session.prompt("free", title="second"),
        TitleTaken,
    ),
    "a resource's name": NameConflict(
        1,
        "resource",
        "text",
        lambda session: session.delete_resource("text"),
        lambda session: session.resource("text", uri="x:free"),
        NameTaken,
    ),
    "a resource's URI": NameConflict(
        1,
        "resource",
        "binary",
        lambda session: session.delete_resource("binary"),
        lambda session: session.resource("free", uri="file:///binary"),
        UriTaken,
    ),
}


@pytest.mark.parametrize("conflict", CONFLICTS.values(), ids=list(CONFLICTS))
async def test_restoring_a_name_title_or_uri_that_was_taken_is_a_conflict_and_changes_nothing(
    session: StoreSession, conflict: NameConflict
) -> None:
    await create_samples(session)
    here = in_project(session, conflict.where)
    (made,) = [
        change
        for change in await read_log(session.store, [conflict.where])
        if change.kind == conflict.kind and getattr(change.after, "name", "") == conflict.name
    ]
    await conflict.go(session)
    done = (await read_log(session.store, [conflict.where]))[-1]
    await conflict.take(session)
    before = await stored_entities(session.store), await read_log(session.store, [1, GARDEN, 3])
    with pytest.raises(conflict.error):
        await here.undo(done.seq)
    with pytest.raises(conflict.error):
        await here.workspace.history.restore(here.caller, made.seq, project=here.caller.project)
    assert (await stored_entities(session.store), await read_log(session.store, [1, GARDEN, 3])) == before


async def test_a_batch_with_a_conflict_is_not_partially_undone(session: StoreSession) -> None:
    await create_samples(session)
    garden = in_project(session, GARDEN)
    await _several_at_once(session)
    await session.prompt("second")
    before = await stored_entities(session.store), await read_log(session.store, [1, GARDEN])
    batch = next(change for change in before[1] if change.action == "delete").batch
    with pytest.raises(NameTaken):
        await session.undo(batch)
    assert (await stored_entities(session.store), await read_log(session.store, [1, GARDEN])) == before
    await check_log(garden.store)


async def test_an_entity_of_a_deleted_project_cannot_be_restored(session: StoreSession) -> None:
    await create_samples(session)
    garden = in_project(session, GARDEN)
    await garden.delete_prompt("prompt")
    seq = (await read_log(session.store, [GARDEN]))[-1].seq
    await _delete_project(session)
    with pytest.raises(ProjectGone):
        await garden.undo(seq)
    await check_log(session.store, GARDEN)


async def test_undoing_the_creation_of_a_project_deletes_its_contents_and_can_be_undone(
    session: StoreSession,
) -> None:
    await create_samples(session)
    garden = in_project(session, GARDEN)
    before = await stored_entities(session.store)
    created = next(
        change for change in await read_log(session.store, [GARDEN]) if change.entity == str(GARDEN)
    )
    await garden.undo(created.seq)
    left = await stored_entities(session.store)
    assert not [key for key, entity in left.items() if getattr(entity, "project", None) == GARDEN]
    assert ("project", str(GARDEN)) not in left
    await check_log(session.store, GARDEN)
    await garden.undo((await read_log(session.store, [GARDEN]))[-1].seq)
    assert without_versions(await stored_entities(session.store)) == without_versions(before)


async def test_the_creation_of_the_default_project_cannot_be_undone(session: StoreSession) -> None:
    await session.prompt("p")
    created = (await read_log(session.store, [session.project]))[0]
    assert (created.kind, created.action) == ("project", "create")
    before = await stored_entities(session.store)
    with pytest.raises(ProjectProtected):
        await session.undo(created.seq)
    assert await stored_entities(session.store) == before


async def test_a_change_of_another_project_cannot_be_undone(session: StoreSession) -> None:
    await create_samples(session)
    for change in [change for change in await read_log(session.store, [GARDEN]) if change.project == GARDEN]:
        with pytest.raises(ChangeNotFound):
            await session.undo(change.seq)
        with pytest.raises(ChangeNotFound):
            await session.workspace.history.restore(
                session.caller, change.seq, project=session.caller.project
            )


@pytest.mark.parametrize("seq", [0, -1, 10**6, 2**63, 10**30])
async def test_an_unknown_change_cannot_be_undone(session: StoreSession, seq: int) -> None:
    with pytest.raises(ChangeNotFound):
        await session.undo(seq)
    with pytest.raises(ChangeNotFound):
        await session.workspace.history.restore(session.caller, seq, project=session.caller.project)


async def test_ids_of_undone_creations_are_not_reused(session: StoreSession) -> None:
    task = await session.task("t")
    await session.undo((await session.newest_change()).seq)
    prompt = await session.prompt("p")
    await session.undo((await session.newest_change()).seq)
    resource = await session.resource("r")
    await session.undo((await session.newest_change()).seq)
    assert (await session.task("t")).id > task.id
    assert (await session.prompt("p")).number > prompt.number
    assert (await session.resource("r")).number > resource.number


async def test_a_version_from_before_a_deletion_is_outdated_after_undo(session: StoreSession) -> None:
    seen = await session.prompt("p")
    await session.delete_prompt("p")
    await session.undo((await session.newest_change()).seq)

    async def work(transaction: Transaction) -> object:
        return await transaction.write("update", seen, replace(seen, content="x", version=seen.version + 1))

    with pytest.raises(DittybagError) as caught:
        await session.write(work)
    assert caught.value.code == "OUTDATED"
