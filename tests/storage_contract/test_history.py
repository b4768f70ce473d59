"""Bringing back: whatever was deleted or overwritten returns from the log, byte for byte."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import Entity, Kind
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
from dittybag.domain.resources import Resource
from tests.storage_contract.desk import ACTOR, Desk, desk_at
from tests.storage_contract.ledger import Holdings, check_books, holdings, log, timeless
from tests.storage_contract.things import make

EVERY_BYTE = bytes(range(256))
ODD_TEXT = "Zeile 1\r\n\t\x01\x7f\u2028 \"'`;-- %_\\ 👩‍👩‍👧 \ufeff\uffff e\u0301 ß İ ς"
GARDEN = 2


async def furnish(desk: Desk) -> None:
    """Something of every kind, here and in the project `garden`, with all that can be set."""
    garden = await desk_at(desk.store, "garden")
    assert garden.project == GARDEN
    for place in (desk, garden):
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
    await desk.task(
        "task",
        project="garden",
        priority=5,
        energy="deep",
        time_estimate="½",
        notes=ODD_TEXT,
        due_date="2026-03-01",
    )
    done = await desk.task("done")
    await desk.workspace.tasks.complete(desk.caller, done.id)


async def contents(desk: Desk, held: Holdings) -> dict[str, bytes]:
    """The bytes of all resources, by id."""
    return {entity.id: await desk.content(entity) for entity in held.values() if isinstance(entity, Resource)}


def without_versions(held: Holdings) -> dict[tuple[Kind, str], Entity | None]:
    return {key: timeless(entity) for key, entity in held.items()}


async def _delete_project(desk: Desk) -> object:
    return await desk.workspace.projects.delete("garden", actor=ACTOR)


async def _rename_project(desk: Desk) -> object:
    return await desk.workspace.projects.rename("garden", "park", actor=ACTOR)


async def _delete_task(desk: Desk) -> object:
    return await desk.workspace.tasks.delete(desk.caller, 1)


async def _overwrite_task(desk: Desk) -> object:
    return await desk.workspace.tasks.update(
        desk.caller, 1, title="x", project="", notes="", due_date="", priority=1
    )


async def _overwrite_prompt(desk: Desk) -> object:
    return await desk.change_prompt(
        "prompt", title="x", content="x", description="", tags=("c",), arguments=()
    )


async def _several_at_once(desk: Desk) -> object:
    async def work(transaction: Transaction) -> None:
        for prompt in await transaction.prompts.in_project(desk.project):
            await transaction.write("delete", prompt, None)
        for resource in await transaction.resources.in_project(desk.project):
            await transaction.write("update", resource, replace(resource, title="x", version=2))
        await make(transaction, "task", desk.project, "new")

    return await desk.write(work)


Deed = Callable[[Desk], Awaitable[object]]

#: What is done, and where.
DEEDS: dict[str, tuple[int, Deed]] = {
    "delete a project with contents": (GARDEN, _delete_project),
    "rename a project": (GARDEN, _rename_project),
    "create a project": (3, lambda desk: desk.workspace.projects.create("new", actor=ACTOR)),
    "delete a prompt": (1, lambda desk: desk.delete_prompt("prompt")),
    "overwrite a prompt": (1, _overwrite_prompt),
    "create a prompt": (1, lambda desk: desk.prompt("new", tags=["a"])),
    "delete a text": (1, lambda desk: desk.delete_resource("text")),
    "overwrite a text": (1, lambda desk: desk.change_resource("text", content="x", title="", description="")),
    "delete bytes": (1, lambda desk: desk.delete_resource("binary")),
    "overwrite bytes": (1, lambda desk: desk.change_resource("binary", content="", mime_type="text/plain")),
    "delete an empty one": (1, lambda desk: desk.delete_resource("empty")),
    "delete a template": (1, lambda desk: desk.delete_resource("template")),
    "create a resource": (1, lambda desk: desk.resource("new", EVERY_BYTE)),
    "delete a task": (1, _delete_task),
    "overwrite a task": (1, _overwrite_task),
    "complete a task": (1, lambda desk: desk.workspace.tasks.complete(desk.caller, 1)),
    "create a task": (1, lambda desk: desk.task("new")),
    "several at once": (1, _several_at_once),
}

deeds = pytest.mark.parametrize(("where", "deed"), DEEDS.values(), ids=list(DEEDS))


def work_in(desk: Desk, project: int) -> Desk:
    """The same desk in another project, be it there or not."""
    return Desk(desk.workspace, replace(desk.caller, project=project))


@deeds
async def test_undoing_brings_back_every_byte_and_undoing_that_takes_it_away_again(
    desk: Desk, where: int, deed: Deed
) -> None:
    await furnish(desk)
    here = work_in(desk, where)
    before = await holdings(desk.store)
    bytes_before = await contents(desk, before)
    await deed(desk)
    after = await holdings(desk.store)
    bytes_after = await contents(desk, after)
    assert without_versions(after) != without_versions(before)

    states = [(before, bytes_before), (after, bytes_after)] * 2
    for wanted, wanted_bytes in states:
        newest = (await log(desk.store, [where]))[-1]
        undone = await here.undo(newest.seq)
        assert {change.batch for change in undone} == {newest.batch}
        now = await holdings(desk.store)
        assert without_versions(now) == without_versions(wanted)
        assert await contents(desk, now) == wanted_bytes
        await check_books(desk.store, GARDEN, 3)


@deeds
async def test_any_change_of_a_batch_undoes_the_whole_batch(desk: Desk, where: int, deed: Deed) -> None:
    await furnish(desk)
    here = work_in(desk, where)
    before = await holdings(desk.store)
    newest = await log(desk.store, [where])
    await deed(desk)
    added = (await log(desk.store, [where]))[len(newest) :]
    undone = await here.undo(added[0].seq)
    assert undone == added
    assert without_versions(await holdings(desk.store)) == without_versions(before)
    logged = (await log(desk.store, [where]))[len(newest) + len(added) :]
    assert {change.action for change in logged} <= {"restore", "delete"}
    assert [(timeless(change.before), timeless(change.after)) for change in logged] == [
        (timeless(change.after), timeless(change.before)) for change in reversed(added)
    ]


@pytest.mark.parametrize(
    ("kind", "label", "deed"),
    [
        ("project", "garden", _delete_project),
        ("project", "garden", _rename_project),
        ("prompt", "prompt", lambda desk: desk.delete_prompt("prompt")),
        ("prompt", "prompt", _overwrite_prompt),
        ("resource", "text", lambda desk: desk.delete_resource("text")),
        ("resource", "text", lambda desk: desk.change_resource("text", content="x")),
        ("resource", "binary", lambda desk: desk.delete_resource("binary")),
        ("resource", "binary", lambda desk: desk.change_resource("binary", content="")),
        ("task", "task", _delete_task),
        ("task", "task", _overwrite_task),
    ],
)
async def test_a_thing_is_restored_to_what_it_was_after_any_of_its_changes(
    desk: Desk, kind: Kind, label: str, deed: Deed
) -> None:
    await furnish(desk)
    here = work_in(desk, GARDEN if kind == "project" else desk.project)
    (made,) = [
        change
        for change in await log(desk.store, [here.project])
        if change.kind == kind
        and label in (getattr(change.after, "name", ""), getattr(change.after, "title", ""))
    ]
    await deed(desk)
    changed = (await here.workspace.history.page(here.caller, kind=kind, entity=made.entity))[0]
    assert changed.seq > made.seq

    for wanted in (made, changed, made, made):
        restored = await here.workspace.history.restore(here.caller, wanted.seq)
        assert timeless(restored) == timeless(wanted.after)
        held = await holdings(desk.store)
        assert held.get((kind, made.entity)) == restored
        if isinstance(restored, Resource):
            expected = EVERY_BYTE if label == "binary" else ODD_TEXT.encode()
            assert (await desk.content(restored) == expected) is (wanted is made)
        await check_books(desk.store, GARDEN)
    # The last of them found everything as it should be.
    history = await here.workspace.history.page(here.caller, kind=kind, entity=made.entity)
    versions = [(change.after or change.before).version for change in history]  # type: ignore[union-attr]
    assert [change.action for change in history[:3]] == ["restore"] * 3
    assert versions == sorted(versions, reverse=True)


async def test_a_restored_project_is_empty_until_its_things_are_restored_too(desk: Desk) -> None:
    await furnish(desk)
    garden = work_in(desk, GARDEN)
    before = await holdings(desk.store)
    made = [change for change in await log(desk.store, [GARDEN]) if change.project == GARDEN]
    await _delete_project(desk)
    with pytest.raises(ProjectGone):
        await garden.workspace.history.restore(garden.caller, made[1].seq)
    await garden.workspace.history.restore(garden.caller, made[0].seq)
    assert await garden.read(lambda transaction: transaction.prompts.in_project(GARDEN)) == []
    for change in made[1:]:
        await garden.workspace.history.restore(garden.caller, change.seq)
    assert without_versions(await holdings(desk.store)) == without_versions(before)
    await check_books(desk.store)


async def test_undoing_an_old_change_overwrites_what_came_later_and_that_can_be_undone(desk: Desk) -> None:
    await desk.prompt("p", "one")
    second = await desk.change_prompt("p", content="two", tags=("t",))
    change = await desk.newest_change()
    await desk.change_prompt("p", content="three")
    await desk.change_prompt("p", title="Four")
    latest = await desk.change_prompt("p", content="five")
    await desk.undo(change.seq)
    found = await desk.read(lambda transaction: transaction.prompts.by_name(desk.project, "p"))
    assert found is not None
    assert (found.content, found.title, found.tags) == ("one", "p", ())
    assert found.version == latest.version + 1 > second.version
    await desk.undo((await desk.newest_change()).seq)
    found = await desk.read(lambda transaction: transaction.prompts.by_name(desk.project, "p"))
    assert timeless(found) == timeless(latest)
    await check_books(desk.store)


async def test_what_is_brought_back_is_found_where_it_was(desk: Desk) -> None:
    """In lists, in pages, under its tags and in searches."""
    await furnish(desk)

    async def views() -> list[Any]:
        prompts, resources, tasks = desk.workspace.prompts, desk.workspace.resources, desk.workspace.tasks
        return [
            await prompts.listing(desk.caller, 0, 100),
            await prompts.recent(desk.caller, 100, 0),
            await prompts.by_tags(desk.caller, ["a", "b"], 100, 0),
            await prompts.tags(desk.caller),
            await prompts.search(desk.caller, "👩‍👩‍👧", 100, 0),
            [r.id for r in await resources.listing(desk.caller, 0, 100, templates=False)],
            [r.id for r in await resources.templates(desk.caller)],
            await resources.uris(desk.caller, "", 100),
            [
                t.id
                for t in await tasks.page(
                    desk.caller, project=None, priority=None, completed=True, limit=100, offset=0
                )
            ],
            await desk.workspace.search.all_kinds(
                desk.caller, "ZEILE 1", ["prompt", "resource", "task"], 100
            ),
        ]

    before = await views()
    await desk.delete_prompt("prompt")
    await desk.delete_resource("text")
    await desk.delete_resource("template")
    await _overwrite_task(desk)
    assert await views() != before
    for change in await desk.workspace.history.page(desk.caller, limit=4):
        await desk.undo(change.seq)
    assert await views() == before


class Clash(Struct, frozen=True):
    """Something that goes, and something else that takes its name, title or URI."""

    where: int
    kind: Kind
    name: str
    go: Deed
    take: Deed
    error: type[DittybagError]


def _new_garden(desk: Desk) -> Awaitable[object]:
    return desk.workspace.projects.create("garden", actor=ACTOR)


CLASHES = {
    "a deleted project's name": Clash(GARDEN, "project", "garden", _delete_project, _new_garden, NameTaken),
    "a renamed project's name": Clash(GARDEN, "project", "garden", _rename_project, _new_garden, NameTaken),
    "a prompt's name": Clash(
        1,
        "prompt",
        "second",
        lambda desk: desk.delete_prompt("second"),
        lambda desk: desk.prompt("second", title="free"),
        NameTaken,
    ),
    "a prompt's title": Clash(
        1,
        "prompt",
        "second",
        lambda desk: desk.change_prompt("second", title="other"),
        lambda desk: desk.prompt("free", title="second"),
        TitleTaken,
    ),
    "a resource's name": Clash(
        1,
        "resource",
        "text",
        lambda desk: desk.delete_resource("text"),
        lambda desk: desk.resource("text", uri="x:free"),
        NameTaken,
    ),
    "a resource's URI": Clash(
        1,
        "resource",
        "binary",
        lambda desk: desk.delete_resource("binary"),
        lambda desk: desk.resource("free", uri="file:///binary"),
        UriTaken,
    ),
}


@pytest.mark.parametrize("clash", CLASHES.values(), ids=list(CLASHES))
async def test_a_name_title_or_uri_that_is_taken_meanwhile_is_a_conflict_and_nothing_changes(
    desk: Desk, clash: Clash
) -> None:
    await furnish(desk)
    here = work_in(desk, clash.where)
    (made,) = [
        change
        for change in await log(desk.store, [clash.where])
        if change.kind == clash.kind and getattr(change.after, "name", "") == clash.name
    ]
    await clash.go(desk)
    done = (await log(desk.store, [clash.where]))[-1]
    await clash.take(desk)
    before = await holdings(desk.store), await log(desk.store, [1, GARDEN, 3])
    with pytest.raises(clash.error):
        await here.undo(done.seq)
    with pytest.raises(clash.error):
        await here.workspace.history.restore(here.caller, made.seq)
    assert (await holdings(desk.store), await log(desk.store, [1, GARDEN, 3])) == before


async def test_a_batch_with_one_conflict_is_not_undone_in_part(desk: Desk) -> None:
    await furnish(desk)
    garden = work_in(desk, GARDEN)
    await _several_at_once(desk)
    await desk.prompt("second")
    before = await holdings(desk.store), await log(desk.store, [1, GARDEN])
    batch = next(change for change in before[1] if change.action == "delete").batch
    with pytest.raises(NameTaken):
        await desk.undo(batch)
    assert (await holdings(desk.store), await log(desk.store, [1, GARDEN])) == before
    await check_books(garden.store)


async def test_what_was_in_a_deleted_project_does_not_come_back_without_it(desk: Desk) -> None:
    await furnish(desk)
    garden = work_in(desk, GARDEN)
    await garden.delete_prompt("prompt")
    seq = (await log(desk.store, [GARDEN]))[-1].seq
    await _delete_project(desk)
    with pytest.raises(ProjectGone):
        await garden.undo(seq)
    await check_books(desk.store, GARDEN)


async def test_undoing_the_creation_of_a_project_takes_what_is_in_it_and_can_be_undone(desk: Desk) -> None:
    await furnish(desk)
    garden = work_in(desk, GARDEN)
    before = await holdings(desk.store)
    created = next(change for change in await log(desk.store, [GARDEN]) if change.entity == str(GARDEN))
    await garden.undo(created.seq)
    left = await holdings(desk.store)
    assert not [key for key, entity in left.items() if getattr(entity, "project", None) == GARDEN]
    assert ("project", str(GARDEN)) not in left
    await check_books(desk.store, GARDEN)
    await garden.undo((await log(desk.store, [GARDEN]))[-1].seq)
    assert without_versions(await holdings(desk.store)) == without_versions(before)


async def test_the_default_project_stays_even_if_its_creation_is_undone(desk: Desk) -> None:
    await desk.prompt("p")
    created = (await log(desk.store, [desk.project]))[0]
    assert (created.kind, created.action) == ("project", "create")
    before = await holdings(desk.store)
    with pytest.raises(ProjectProtected):
        await desk.undo(created.seq)
    assert await holdings(desk.store) == before


async def test_nobody_undoes_what_happened_in_another_project(desk: Desk) -> None:
    await furnish(desk)
    for change in [change for change in await log(desk.store, [GARDEN]) if change.project == GARDEN]:
        with pytest.raises(ChangeNotFound):
            await desk.undo(change.seq)
        with pytest.raises(ChangeNotFound):
            await desk.workspace.history.restore(desk.caller, change.seq)


@pytest.mark.parametrize("seq", [0, -1, 10**6, 2**63, 10**30])
async def test_a_change_that_never_was_cannot_be_undone(desk: Desk, seq: int) -> None:
    with pytest.raises(ChangeNotFound):
        await desk.undo(seq)
    with pytest.raises(ChangeNotFound):
        await desk.workspace.history.restore(desk.caller, seq)


async def test_ids_of_what_was_undone_never_come_back(desk: Desk) -> None:
    task = await desk.task("t")
    await desk.undo((await desk.newest_change()).seq)
    prompt = await desk.prompt("p")
    await desk.undo((await desk.newest_change()).seq)
    resource = await desk.resource("r")
    await desk.undo((await desk.newest_change()).seq)
    assert (await desk.task("t")).id > task.id
    assert (await desk.prompt("p")).number > prompt.number
    assert (await desk.resource("r")).number > resource.number


async def test_a_version_seen_before_a_deletion_is_outdated_after_its_undoing(desk: Desk) -> None:
    seen = await desk.prompt("p")
    await desk.delete_prompt("p")
    await desk.undo((await desk.newest_change()).seq)

    async def work(transaction: Transaction) -> object:
        return await transaction.write("update", seen, replace(seen, content="x", version=seen.version + 1))

    with pytest.raises(DittybagError) as caught:
        await desk.write(work)
    assert caught.value.code == "OUTDATED"
