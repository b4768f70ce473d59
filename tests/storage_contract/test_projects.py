"""Projects in a store."""

from __future__ import annotations

import asyncio

import pytest

from dittybag.domain.errors import NameTaken, ProjectGone, ProjectNotFound, ProjectProtected
from dittybag.domain.ports import Store
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.services.workspace import Workspace
from tests.storage_contract.desk import ACTOR, Desk, OpenStore, desk_at
from tests.storage_contract.ledger import check_books


async def names(desk: Desk) -> list[str]:
    return [size.project.name for size in await desk.workspace.projects.all()]


async def test_a_new_store_has_the_default_project_and_nothing_else(desk: Desk) -> None:
    sizes = await desk.workspace.projects.all()
    assert [(size.project.name, size.prompts, size.resources, size.tasks) for size in sizes] == [
        (DEFAULT_PROJECT, 0, 0, 0)
    ]


async def test_opening_a_store_again_makes_no_second_default_project(open_store: OpenStore) -> None:
    first = await desk_at(await open_store())
    second = await desk_at(await open_store())
    assert first.caller == second.caller
    assert await names(second) == [DEFAULT_PROJECT]
    assert len(await second.workspace.history.page(second.caller)) == 1


async def test_a_project_is_found_by_id_and_by_name(desk: Desk) -> None:
    made = await desk.workspace.projects.create("Gärten 🌱", actor=ACTOR)
    assert await desk.workspace.projects.find("Gärten 🌱") == made
    assert await desk.read(lambda transaction: transaction.projects.get(made.id)) == made
    assert await desk.read(lambda transaction: transaction.projects.get(made.id + 1)) is None
    assert await desk.read(lambda transaction: transaction.projects.by_name("gärten 🌱")) is None


async def test_projects_are_listed_in_the_order_of_creation_with_what_is_in_them(desk: Desk) -> None:
    garden = await desk_at(desk.store, "garden")
    await desk_at(desk.store, "attic")
    for name in ("a", "b"):
        await garden.prompt(name)
    await garden.resource("plan")
    await desk.task("Dig", project="garden")
    await desk.task("Sweep", project="nowhere")
    sizes = await desk.workspace.projects.all()
    assert [(size.project.name, size.prompts, size.resources, size.tasks) for size in sizes] == [
        (DEFAULT_PROJECT, 0, 0, 0),
        ("garden", 2, 1, 1),
        ("attic", 0, 0, 0),
    ]


async def test_a_project_name_is_unique(desk: Desk) -> None:
    projects = desk.workspace.projects
    await projects.create("one", actor=ACTOR)
    await projects.create("two", actor=ACTOR)
    with pytest.raises(NameTaken):
        await projects.create("one", actor=ACTOR)
    with pytest.raises(NameTaken):
        await projects.rename("two", "one", actor=ACTOR)
    await projects.create("ONE", actor=ACTOR)
    assert await names(desk) == [DEFAULT_PROJECT, "one", "two", "ONE"]
    await check_books(desk.store)


async def test_of_two_processes_that_want_one_project_name_one_gets_it(open_store: OpenStore) -> None:
    workspaces = [Workspace(await open_store()) for _ in range(2)]
    for number in range(20):
        outcomes = await asyncio.gather(
            *(each.projects.create(f"p{number}", actor=ACTOR) for each in workspaces), return_exceptions=True
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NameTaken", "Project"]


async def test_renaming_keeps_what_is_in_a_project(desk: Desk) -> None:
    garden = await desk_at(desk.store, "garden")
    prompt = await garden.prompt("seeds")
    renamed = await desk.workspace.projects.rename("garden", "park", actor=ACTOR)
    assert (renamed.id, renamed.name, renamed.version) == (garden.project, "park", 2)
    assert await desk.workspace.projects.find("park") == renamed
    with pytest.raises(ProjectNotFound):
        await desk.workspace.projects.find("garden")
    assert await garden.read(lambda transaction: transaction.prompts.in_project(renamed.id)) == [prompt]


async def test_a_name_is_free_again_when_its_project_is_renamed_or_deleted(desk: Desk) -> None:
    projects = desk.workspace.projects
    first = await projects.create("one", actor=ACTOR)
    await projects.rename("one", "other", actor=ACTOR)
    second = await projects.create("one", actor=ACTOR)
    await projects.delete("one", actor=ACTOR)
    third = await projects.create("one", actor=ACTOR)
    assert len({first.id, second.id, third.id}) == 3
    await check_books(desk.store, second.id)


async def test_deleting_a_project_takes_its_prompts_and_resources_and_leaves_tasks_and_others(
    desk: Desk,
) -> None:
    garden = await desk_at(desk.store, "garden")
    for place in (desk, garden):
        await place.prompt("same", tags=["t"])
        await place.resource("same")
    task = await desk.task("Dig", project="garden")
    await desk.workspace.projects.delete("garden", actor=ACTOR)
    assert await names(desk) == [DEFAULT_PROJECT]
    assert await desk.read(lambda transaction: transaction.prompts.in_project(garden.project)) == []
    assert await desk.read(lambda transaction: transaction.resources.in_project(garden.project)) == []
    assert await desk.read(lambda transaction: transaction.prompts.tags_in_use(garden.project)) == []
    assert (await desk.workspace.prompts.recent(desk.caller, 10, 0)).total == 1
    assert await desk.workspace.tasks.get(desk.caller, task.id) == task
    with pytest.raises(ProjectGone):
        await garden.prompt("more")
    with pytest.raises(ProjectGone):
        await garden.workspace.prompts.recent(garden.caller, 10, 0)
    await check_books(desk.store, garden.project)


async def test_the_default_project_can_be_neither_renamed_nor_deleted(store: Store) -> None:
    projects = Workspace(store).projects
    with pytest.raises(ProjectProtected):
        await projects.rename(DEFAULT_PROJECT, "other", actor=ACTOR)
    with pytest.raises(ProjectProtected):
        await projects.delete(DEFAULT_PROJECT, actor=ACTOR)
    await check_books(store)


async def test_the_number_of_a_deleted_project_never_comes_back(open_store: OpenStore) -> None:
    desk = await desk_at(await open_store())
    projects = desk.workspace.projects
    last = await projects.create("last", actor=ACTOR)
    await projects.delete("last", actor=ACTOR)
    assert (await projects.create("next", actor=ACTOR)).id > last.id
    newest = await projects.create("newest", actor=ACTOR)
    await projects.delete("newest", actor=ACTOR)
    await desk.store.close()
    again = Workspace(await open_store())
    assert (await again.projects.create("later", actor=ACTOR)).id > newest.id


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        ("", ["100", "100%", "Alpha", "a_b", "alpine", "axb"]),
        ("al", ["Alpha", "alpine"]),
        ("AL", ["Alpha", "alpine"]),
        ("100%", ["100%"]),
        ("a_", ["a_b"]),
        ("lp", []),
        ("\\", []),
    ],
)
async def test_project_names_are_completed_in_any_case(desk: Desk, prefix: str, found: list[str]) -> None:
    for name in ("alpine", "Alpha", "a_b", "axb", "100%", "100"):
        await desk.workspace.projects.create(name, actor=ACTOR)
    listed = await desk.workspace.projects.names(prefix, 100)
    assert sorted(name for name in listed if name != DEFAULT_PROJECT) == found
    assert await desk.workspace.projects.names(prefix, 1) == listed[:1]


async def test_project_names_beyond_ascii_are_completed_in_any_case_too(desk: Desk) -> None:
    await desk.workspace.projects.create("Ärger", actor=ACTOR)
    assert await desk.workspace.projects.names("är", 10) == ["Ärger"]
