"""The books: what is in a store, and what its log says should be."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import TypeAlias

from msgspec.structs import replace

from dittybag.domain.changes import KINDS, Change, Entity, Kind, key_of, kind_of, project_of
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.tasks import DEFAULT_USER

Holdings: TypeAlias = dict[tuple[Kind, str], Entity]

#: More than any test makes.
ALL = 1_000_000


async def holdings(store: Store, users: Iterable[str] = (DEFAULT_USER,)) -> Holdings:
    """Everything in the tables. The content of every resource must be the one it names."""

    async def work(transaction: Transaction) -> list[Entity]:
        found: list[Entity] = []
        for size in await transaction.projects.all():
            found.append(size.project)
            found += await transaction.prompts.in_project(size.project.id)
            resources = await transaction.resources.in_project(size.project.id)
            for resource in resources:
                content = await transaction.content(resource.sha256)
                assert (sha256(content).hexdigest(), len(content)) == (resource.sha256, resource.size)
            found += resources
        for user in users:
            found += await transaction.tasks.page(
                user, project=None, priority=None, completed=True, limit=ALL, offset=0
            )
        return found

    return {(kind_of(entity), key_of(entity)): entity for entity in await store.read(work)}


async def log(store: Store, projects: Iterable[int]) -> list[Change]:
    """All changes in these projects and in none, the oldest first."""

    async def work(transaction: Transaction) -> list[Change]:
        found: dict[int, Change] = {}
        for project in projects:
            for change in await transaction.changes.page(
                project, kind=None, entity=None, before=None, limit=ALL
            ):
                found[change.seq] = change
        return [found[seq] for seq in sorted(found)]

    return await store.read(work)


def replay_log(changes: Iterable[Change]) -> Holdings:
    """What there is after these changes. Each must begin where the one before it ended."""
    state: Holdings = {}
    for change in changes:
        key = (change.kind, change.entity)
        assert change.before == state.pop(key, None), f"change {change.seq} does not begin where {key} was"
        for entity in (change.before, change.after):
            if entity is not None:
                assert type(entity) is KINDS[change.kind]
                assert key_of(entity) == change.entity
                assert project_of(entity) == change.project
        if change.after is not None:
            state[key] = change.after
    return state


async def check_books(store: Store, *past_projects: int, users: Iterable[str] = (DEFAULT_USER,)) -> None:
    """The log must account for all that is in the tables. `past_projects`: those that are gone."""
    held = await holdings(store, users)
    living = [int(key) for kind, key in held if kind == "project"]
    assert replay_log(await log(store, [*living, *past_projects])) == held


def timeless(entity: Entity | None) -> Entity | None:
    """A thing without its version, which only grows."""
    return None if entity is None else replace(entity, version=0)
