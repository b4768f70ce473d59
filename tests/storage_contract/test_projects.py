"""Storage of projects."""

from __future__ import annotations

import asyncio

import pytest

from dittybag.domain.errors import NameTaken, ProjectGone, ProjectNotFound, ProjectProtected
from dittybag.domain.ports import Store
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.domain.queries import ChangeQuery, PromptQuery
from dittybag.services.workspace import Workspace
from tests.storage_contract.log_consistency import check_log
from tests.storage_contract.store_session import ACTOR, OpenStore, StoreSession, open_session


async def names(session: StoreSession) -> list[str]:
    return [size.project.name for size in await session.workspace.projects.all()]


async def test_a_new_store_has_the_default_project_and_nothing_else(session: StoreSession) -> None:
    sizes = await session.workspace.projects.all()
    assert [(size.project.name, size.prompts, size.resources, size.tasks) for size in sizes] == [
        (DEFAULT_PROJECT, 0, 0, 0)
    ]


async def test_reopening_a_store_does_not_create_a_second_default_project(open_store: OpenStore) -> None:
    first = await open_session(await open_store())
    second = await open_session(await open_store())
    assert first.caller == second.caller
    assert await names(second) == [DEFAULT_PROJECT]
    assert (
        len(await second.workspace.history.page(second.caller, ChangeQuery(project=second.caller.project)))
        == 1
    )


async def test_a_project_is_found_by_id_and_by_name(session: StoreSession) -> None:
    made = await session.workspace.projects.create("Gärten 🌱", actor=ACTOR)
    assert await session.workspace.projects.find("Gärten 🌱") == made
    assert await session.read(lambda transaction: transaction.projects.get(made.id)) == made
    assert await session.read(lambda transaction: transaction.projects.get(made.id + 1)) is None
    assert await session.read(lambda transaction: transaction.projects.by_name("gärten 🌱")) is None


async def test_projects_are_listed_in_creation_order_with_their_counts(
    session: StoreSession,
) -> None:
    garden = await open_session(session.store, "garden")
    await open_session(session.store, "attic")
    for name in ("a", "b"):
        await garden.prompt(name)
    await garden.resource("plan")
    await session.task("Dig", project="garden")
    await session.task("Sweep", project="nowhere")
    sizes = await session.workspace.projects.all()
    assert [(size.project.name, size.prompts, size.resources, size.tasks) for size in sizes] == [
        (DEFAULT_PROJECT, 0, 0, 0),
        ("garden", 2, 1, 1),
        ("attic", 0, 0, 0),
    ]


async def test_a_project_name_is_unique(session: StoreSession) -> None:
    projects = session.workspace.projects
    await projects.create("one", actor=ACTOR)
    await projects.create("two", actor=ACTOR)
    with pytest.raises(NameTaken):
        await projects.create("one", actor=ACTOR)
    with pytest.raises(NameTaken):
        await projects.rename("two", "one", actor=ACTOR)
    await projects.create("ONE", actor=ACTOR)
    assert await names(session) == [DEFAULT_PROJECT, "one", "two", "ONE"]
    await check_log(session.store)


async def test_only_one_of_two_processes_can_create_a_project_name(open_store: OpenStore) -> None:
    workspaces = [Workspace(await open_store()) for _ in range(2)]
    for number in range(20):
        outcomes = await asyncio.gather(
            *(each.projects.create(f"p{number}", actor=ACTOR) for each in workspaces), return_exceptions=True
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NameTaken", "Project"]


async def test_renaming_a_project_keeps_its_contents(session: StoreSession) -> None:
    garden = await open_session(session.store, "garden")
    prompt = await garden.prompt("seeds")
    renamed = await session.workspace.projects.rename("garden", "park", actor=ACTOR)
    assert (renamed.id, renamed.name, renamed.version) == (garden.project, "park", 2)
    assert await session.workspace.projects.find("park") == renamed
    with pytest.raises(ProjectNotFound):
        await session.workspace.projects.find("garden")
    assert await garden.read(lambda transaction: transaction.prompts.in_project(renamed.id)) == [prompt]


async def test_a_name_is_free_again_when_its_project_is_renamed_or_deleted(session: StoreSession) -> None:
    projects = session.workspace.projects
    first = await projects.create("one", actor=ACTOR)
    await projects.rename("one", "other", actor=ACTOR)
    second = await projects.create("one", actor=ACTOR)
    await projects.delete("one", actor=ACTOR)
    third = await projects.create("one", actor=ACTOR)
    assert len({first.id, second.id, third.id}) == 3
    await check_log(session.store, second.id)


async def test_deleting_a_project_deletes_its_prompts_and_resources_but_not_tasks_or_other_projects(
    session: StoreSession,
) -> None:
    garden = await open_session(session.store, "garden")
    for place in (session, garden):
        await place.prompt("same", tags=["t"])
        await place.resource("same")
    task = await session.task("Dig", project="garden")
    await session.workspace.projects.delete("garden", actor=ACTOR)
    assert await names(session) == [DEFAULT_PROJECT]
    assert await session.read(lambda transaction: transaction.prompts.in_project(garden.project)) == []
    assert await session.read(lambda transaction: transaction.resources.listing(garden.project)) == []
    assert await session.read(lambda transaction: transaction.prompts.tags_in_use(garden.project)) == []
    assert (
        await session.workspace.prompts.page(
            session.caller, PromptQuery(project=session.caller.project, limit=10, offset=0)
        )
    ).total == 1
    assert await session.workspace.tasks.get(session.caller, task.id) == task
    with pytest.raises(ProjectGone):
        await garden.prompt("more")
    with pytest.raises(ProjectGone):
        await garden.workspace.prompts.page(
            garden.caller, PromptQuery(project=garden.caller.project, limit=10, offset=0)
        )
    await check_log(session.store, garden.project)


async def test_the_default_project_cannot_be_renamed_or_deleted(store: Store) -> None:
    projects = Workspace(store).projects
    with pytest.raises(ProjectProtected):
        await projects.rename(DEFAULT_PROJECT, "other", actor=ACTOR)
    with pytest.raises(ProjectProtected):
        await projects.delete(DEFAULT_PROJECT, actor=ACTOR)
    await check_log(store)


async def test_the_id_of_a_deleted_project_is_not_reused(open_store: OpenStore) -> None:
    session = await open_session(await open_store())
    projects = session.workspace.projects
    last = await projects.create("last", actor=ACTOR)
    await projects.delete("last", actor=ACTOR)
    assert (await projects.create("next", actor=ACTOR)).id > last.id
    newest = await projects.create("newest", actor=ACTOR)
    await projects.delete("newest", actor=ACTOR)
    await session.store.close()
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
async def test_project_names_are_completed_ignoring_case(
    session: StoreSession, prefix: str, found: list[str]
) -> None:
    for name in ("alpine", "Alpha", "a_b", "axb", "100%", "100"):
        await session.workspace.projects.create(name, actor=ACTOR)
    listed = await session.workspace.projects.names(prefix, 100)
    assert sorted(name for name in listed if name != DEFAULT_PROJECT) == found
    assert await session.workspace.projects.names(prefix, 1) == listed[:1]


async def test_non_ascii_project_names_are_completed_ignoring_case(session: StoreSession) -> None:
    await session.workspace.projects.create("Ärger", actor=ACTOR)
    assert await session.workspace.projects.names("är", 10) == ["Ärger"]
