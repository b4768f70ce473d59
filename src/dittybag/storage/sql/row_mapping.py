"""Conversion of rows to structs, and of the states in the change log."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from dittybag.domain.changes import PURGED_LABEL, Change, ChangeNotification, Purged
from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind
from dittybag.domain.projects import Project
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.storage.sql.sql_driver import Row

S = TypeVar("S")

#: The beginning of the JSON of a purged state.
PURGED_JSON: Final = '{"state":"purged"'


@cache
def _state_decoder(kind: Kind | None) -> Callable[[str], Entity | Purged]:
    """Return the decoder of a kind, or of purged states. Created on first use, because that is slow."""
    return msgspec.json.Decoder(Purged if kind is None else ENTITY_TYPES[kind].struct).decode


def row_reader(struct: type[S], **decoders: Callable[[Any], Any]) -> Callable[[Row], S]:
    """Return a function that makes a struct of a row, which begins with the fields in their order.

    It is compiled, like the methods of named tuples: a call with `**` takes five times as long.
    """
    arguments = ", ".join(
        f"{name}={f'decode_{name}' if name in decoders else ''}(row[{position}])"
        for position, name in enumerate(struct.__struct_fields__)  # type: ignore[attr-defined]
    )
    known = {"struct": struct, **{f"decode_{name}": decode for name, decode in decoders.items()}}
    reader: Callable[[Row], S] = eval(f"lambda row: struct({arguments})", known)  # noqa: S307  # own names only
    return reader


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
        interface=row[10],
    )


def state_from_json(kind: Kind, text: str | None) -> Entity | Purged | None:
    """Decode a state in the change log."""
    if text is None:
        return None
    return _state_decoder(None if text.startswith(PURGED_JSON) else kind)(text)


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
            id=int(change.entity),
            user=state.user,
            title=PURGED_LABEL,
            project_id=change.project,
            version=state.version,
            **times,
        )
    return None


def number_of(change: Change) -> int:
    """Return the key of the row of a changed entity: its number, or its id if it has no number."""
    return getattr(change.state, "number", 0) or int(change.entity)


def notification_from_row(row: Row) -> ChangeNotification:
    _, kind, project, before, after = row
    if kind != "resource":
        return ChangeNotification(kind, project)
    states = [state_from_json("resource", text) for text in (before, after)]
    resources = [state for state in states if isinstance(state, Resource)]
    uris = tuple(dict.fromkeys(resource.uri for resource in resources))
    listed = {
        (item.name, item.uri, item.title, item.description, item.mime_type, item.size) for item in resources
    }
    return ChangeNotification(kind, project, uris, listed=len(resources) == 1 or len(listed) > 1)
