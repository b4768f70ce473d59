"""Conversion of database rows to domain entities. Both backends select the same columns in this order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from dittybag.domain.accounts import Token, User
from dittybag.domain.changes import PURGED_LABEL, Change, ChangeNotification, Purged
from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind
from dittybag.domain.idempotency import StoredResult
from dittybag.domain.projects import Project
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task

#: The beginning of the JSON of a purged state.
PURGED_JSON: Final = '{"state":"purged"'

_ENTITY_DECODERS: Final[dict[Kind, Callable[[str], Entity]]] = {
    kind: msgspec.json.Decoder(entity_type.struct).decode for kind, entity_type in ENTITY_TYPES.items()
}
_decode_purged: Final = msgspec.json.Decoder(Purged).decode

Row: TypeAlias = Sequence[Any]


def project_from_row(row: Row) -> Project:
    return Project(id=row[0], name=row[1], created_at=row[2], updated_at=row[3], version=row[4])


def resource_from_row(row: Row) -> Resource:
    return Resource(
        number=row[0],
        id=row[1],
        project=row[2],
        name=row[3],
        uri=row[4],
        title=row[5],
        description=row[6],
        mime_type=row[7],
        sha256=row[8],
        size=row[9],
        created_at=row[10],
        updated_at=row[11],
        version=row[12],
    )


def task_from_row(row: Row) -> Task:
    return Task(
        id=row[0],
        user=row[1],
        title=row[2],
        project=row[3],
        priority=row[4],
        energy=row[5],
        time_estimate=row[6],
        notes=row[7],
        due_date=row[8],
        completed_at=row[9],
        created_at=row[10],
        updated_at=row[11],
        version=row[12],
    )


def change_from_row(row: Row) -> Change:
    kind: Kind = row[5]
    return Change(
        seq=row[0],
        batch=row[1],
        at=row[2],
        actor=row[3],
        action=row[4],
        kind=kind,
        entity=row[6],
        project=row[7],
        before=state_from_json(kind, row[8]),
        after=state_from_json(kind, row[9]),
    )


def state_from_json(kind: Kind, text: str | None) -> Entity | Purged | None:
    """Decode a state in the change log."""
    if text is None:
        return None
    if text.startswith(PURGED_JSON):
        return _decode_purged(text)
    return _ENTITY_DECODERS[kind](text)


def state_to_json(state: Entity | Purged | None) -> str | None:
    """Encode a state for the change log."""
    return None if state is None else msgspec.json.encode(state).decode()


def stand_in(change: Change) -> Entity | None:
    """Return the row for the state after a change, which may have been purged.

    Other rows refer to projects, and the ids of projects and tasks are counted by their rows. So these have
    a row even where their content is unknown.
    """
    state = change.after
    if not isinstance(state, Purged):
        return state
    times: dict[str, Any] = {"created_at": change.at, "updated_at": change.at}
    if change.kind == "project":
        return Project(
            id=int(change.entity), name=f"(purged {change.entity})", version=state.version, **times
        )
    if change.kind == "task":
        return Task(
            id=int(change.entity), user=state.user, title=PURGED_LABEL, version=state.version, **times
        )
    return None


def number_of(change: Change) -> int:
    """Return the key of the row of a changed entity: its number, or its id if it has no number."""
    return getattr(change.state, "number", 0) or int(change.entity)


def notification_from_row(row: Row) -> ChangeNotification:
    _, kind, project, before, after = row
    if kind != "resource":
        return ChangeNotification(kind, project)
    old, new = (_resource(text) for text in (before, after))
    uris = dict.fromkeys(item.uri for item in (old, new) if item is not None)
    return ChangeNotification(kind, project, tuple(uris), _listed_fields(old) != _listed_fields(new))


def _resource(text: str | None) -> Resource | None:
    state = state_from_json("resource", text)
    return state if isinstance(state, Resource) else None


def _listed_fields(resource: Resource | None) -> Any:
    if resource is None:
        return None
    return (
        resource.name,
        resource.uri,
        resource.title,
        resource.description,
        resource.mime_type,
        resource.size,
    )


def stored_result_from_row(row: Row) -> StoredResult:
    return StoredResult(digest=row[0], at=row[1], first=row[2], last=row[3], result=row[4])


def user_from_row(row: Row) -> User:
    return User(name=row[0], created_at=row[1], disabled_at=row[2])


def token_from_row(row: Row) -> Token:
    return Token(
        id=row[0],
        user=row[1],
        scope=row[2],
        label=row[3],
        hint=row[4],
        created_at=row[5],
        expires_at=row[6],
        revoked_at=row[7],
        used_at=row[8],
    )
