"""References to what is to be purged, as people type them: `review`, `task:12` or a URI."""

from __future__ import annotations

from dittybag.domain.changes import Purged
from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind
from dittybag.domain.errors import AmbiguousReference, NothingToPurge
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.resources import Resource
from dittybag.services.history_service import iterate_changes
from dittybag.services.purge_service import EntityKey


class PurgeReferences:
    """Finds entities, current and deleted, for the owner of the machine."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(
        self, reference: str, *, kind: Kind | None = None, project: int | None = None
    ) -> tuple[EntityKey, ...]:
        """Return the entities that a reference names.

        A name also matches deleted entities that had it last. Raises `NothingToPurge` and
        `AmbiguousReference`.
        """
        prefix, colon, rest = reference.partition(":")
        kinds = [name for name in ENTITY_TYPES if name == prefix and colon]
        name = rest if kinds else reference
        return await self._store.read(
            lambda transaction: _select(transaction, reference, name, kinds[0] if kinds else kind, project),
            slow=True,
        )


async def _select(
    transaction: Transaction, reference: str, name: str, kind: Kind | None, project: int | None
) -> tuple[EntityKey, ...]:
    found = await _find_entities(transaction, name, kind, project)
    if not found:
        raise NothingToPurge(reference)
    if len({(key[0], owner) for key, owner in found.items()}) > 1:
        raise AmbiguousReference(reference, await _describe(transaction, name, found))
    return tuple(found)


async def _find_entities(
    transaction: Transaction, name: str, kind: Kind | None, project: int | None
) -> dict[EntityKey, int | None]:
    """Return the matching entities with their projects."""
    keys: dict[EntityKey, None] = {}
    for wanted in (kind,) if kind is not None else ("prompt", "resource", "project"):
        if wanted != "project":
            keys[wanted, name.lower()] = None
        if wanted != "task":
            for key in await _ever_named(transaction, name, wanted, project):
                keys[key] = None
    found: dict[EntityKey, int | None] = {}
    for key in keys:
        latest = await transaction.changes.latest(*key)
        if latest is None or project not in (None, latest.project):
            continue
        if key[1] == name.lower() or _is_named(latest.state, name):
            found[key] = latest.project
    return found


async def _ever_named(
    transaction: Transaction, name: str, kind: Kind, project: int | None
) -> dict[EntityKey, None]:
    """Return the entities that ever had a name, title or URI."""
    query = ChangeQuery(project=project, kind=kind, name=name)
    return {(change.kind, change.entity): None async for change in iterate_changes(transaction, query)}


def _is_named(state: Entity | Purged, name: str) -> bool:
    """Return whether this is the last name of an entity."""
    if isinstance(state, Prompt):
        return name in (state.name, state.title)
    if isinstance(state, Resource):
        return name in (state.name, state.uri)
    return isinstance(state, Project) and name == state.name


async def _describe(transaction: Transaction, name: str, found: dict[EntityKey, int | None]) -> list[str]:
    described: dict[str, None] = {}
    for (kind, _), project in found.items():
        owner = None if project is None else await transaction.projects.get(project)
        place = f" in project {owner.name}" if owner is not None else " in a deleted project"
        described[f"{kind}:{name}{'' if kind == 'project' else place}"] = None
    return list(described)
