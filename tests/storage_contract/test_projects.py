"""Storage of projects."""

from __future__ import annotations

import asyncio

import pytest

from dittybag.domain.errors import ProjectProtected
from dittybag.domain.ports import Store
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.domain.queries import ChangeQuery
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


async def test_only_one_of_two_processes_can_create_a_project_name(open_store: OpenStore) -> None:
    workspaces = [Workspace(await open_store()) for _ in range(2)]
    for number in range(20):
        outcomes = await asyncio.gather(
            *(each.projects.create(f"p{number}", actor=ACTOR) for each in workspaces), return_exceptions=True
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NameTaken", "Project"]


async def test_the_default_project_cannot_be_renamed_or_deleted(store: Store) -> None:
    projects = Workspace(store).projects
    with pytest.raises(ProjectProtected):
        await projects.rename(DEFAULT_PROJECT, "other", actor=ACTOR)
    with pytest.raises(ProjectProtected):
        await projects.delete(DEFAULT_PROJECT, actor=ACTOR)
    await check_log(store)


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
