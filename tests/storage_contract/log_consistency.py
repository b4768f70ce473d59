"""Checks that the tables of a store match its change log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from typing import TypeAlias

from msgspec.structs import replace

from dittybag.domain.changes import Change, Purged
from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind, key_of, kind_of, project_of
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.queries import ChangeQuery, TaskQuery
from dittybag.domain.tasks import DEFAULT_USER

EntitiesByKey: TypeAlias = dict[tuple[Kind, str], Entity]

#: More than any test creates.
ALL = 1_000_000


async def stored_entities(store: Store, users: Iterable[str] = (DEFAULT_USER,)) -> EntitiesByKey:
    """Return all entities in the tables.

    Checks the hash and size of every resource's content, and the kept numbers of prompts, tags and resources.
    """

    async def work(transaction: Transaction) -> list[Entity]:
        found: list[Entity] = []
        for size in await transaction.projects.all():
            found.append(size.project)
            prompts = await transaction.prompts.in_project(size.project.id)
            found += prompts
            tags = Counter(tag for prompt in prompts for tag in prompt.tags)
            in_use = await transaction.prompts.tags_in_use(size.project.id)
            assert {tag.name: tag.prompt_count for tag in in_use} == tags
            resources = await transaction.resources.listing(size.project.id)
            types = Counter(resource.mime_type for resource in resources)
            assert dict(await transaction.resources.types(size.project.id, ALL)) == types
            assert (size.prompts, size.resources) == (len(prompts), len(resources))
            for resource in resources:
                content = await transaction.content(resource.sha256)
                assert (sha256(content).hexdigest(), len(content)) == (resource.sha256, resource.size)
            found += resources
        for user in users:
            found += await transaction.tasks.page(TaskQuery(user=user))
        return found

    return {(kind_of(entity), key_of(entity)): entity for entity in await store.read(work)}


async def read_log(store: Store, projects: Iterable[int]) -> list[Change]:
    """Return all changes of these projects and of tasks, oldest first."""

    async def work(transaction: Transaction) -> list[Change]:
        found: dict[int, Change] = {}
        for project in projects:
            for change in await transaction.changes.page(ChangeQuery(project=project)):
                found[change.seq] = change
        return [found[seq] for seq in sorted(found)]

    return await store.read(work)


def replay_log(changes: Iterable[Change]) -> EntitiesByKey:
    """Return the entities after these changes. Each must start from the state the previous one left."""
    state: dict[tuple[Kind, str], Entity | Purged] = {}
    for change in changes:
        key = (change.kind, change.entity)
        current = state.pop(key, None)
        assert isinstance(change.before, Purged) == isinstance(current, Purged)
        assert isinstance(current, Purged) or change.before == current, (
            f"change {change.seq} does not start from the state of {key}"
        )
        for entity in (change.before, change.after):
            if not isinstance(entity, Purged | None):
                assert type(entity) is ENTITY_TYPES[change.kind].struct
                assert key_of(entity) == change.entity
                # A task can move to another project, where the change is listed.
                assert project_of(entity) == change.project or (
                    change.kind == "task" and entity is not change.state
                )
        if change.after is not None:
            state[key] = change.after
    assert not any(isinstance(entity, Purged) for entity in state.values())
    return {key: entity for key, entity in state.items() if not isinstance(entity, Purged)}


async def check_log(store: Store, *deleted_projects: int, users: Iterable[str] = (DEFAULT_USER,)) -> None:
    """Check that the log leads to the tables. `deleted_projects`: deleted projects."""
    stored = await stored_entities(store, users)
    existing = [int(key) for kind, key in stored if kind == "project"]
    assert replay_log(await read_log(store, [*existing, *deleted_projects])) == stored


def without_version(entity: Entity | Purged | None) -> Entity | Purged | None:
    """Return an entity without its version, which always increases."""
    return None if entity is None else replace(entity, version=0)
