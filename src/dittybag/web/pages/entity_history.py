"""The history of one entity: its changes and its versions."""

from __future__ import annotations

from msgspec import Struct

from dittybag.domain.changes import Change, Purged
from dittybag.domain.entities import Kind
from dittybag.domain.queries import ChangeQuery
from dittybag.web.browser_requests import WebRequest, parse_number
from dittybag.web.entity_diffs import changed_labels


async def changes_of(
    request: WebRequest, kind: Kind, id: str, *, limit: int, before: int | None = None
) -> list[Change]:
    """Return the changes of an entity, newest first; of a task, only the latest."""
    if kind == "task":
        # Users see their tasks without access to the project.
        return [await request.workspace.tasks.latest_change(request.caller, parse_number(id) or 0)]
    query = ChangeQuery(
        project=request.caller.project, kind=kind, entity=id.lower(), limit=limit, before=before
    )
    return await request.workspace.history.page(request.caller, query)


async def latest_change(request: WebRequest, kind: Kind, id: str) -> Change | None:
    """Return the latest change of an entity, even if it was deleted; None if it never existed."""
    return next(iter(await changes_of(request, kind, id, limit=1)), None)


async def deletion_of(request: WebRequest, kind: Kind, id: str) -> Change | None:
    """Return the change that deleted an entity, to offer undo; None if it exists or was purged."""
    latest = await latest_change(request, kind, id) if id else None
    return latest if latest is not None and latest.after is None and latest.purged is None else None


async def seq_to_undo(request: WebRequest, kind: Kind, id: str, version: int | None) -> int:
    """Return the `seq` of the change that has just made a version of an entity, or deleted it (`None`).

    0 if someone else has changed it since.
    """
    latest = await latest_change(request, kind, id)
    if latest is None:
        return 0
    return latest.seq if version == (None if latest.after is None else latest.after.version) else 0


class Version(Struct, frozen=True):
    """A version in the history of a prompt or resource."""

    change: Change
    is_current: bool

    @property
    def number(self) -> int | None:
        """None for a deletion."""
        return None if self.change.after is None else self.change.after.version

    @property
    def changed_fields(self) -> str:
        return changed_labels(self.change)

    @property
    def is_purged(self) -> bool:
        return isinstance(self.change.state, Purged)

    @property
    def can_be_restored(self) -> bool:
        return self.number is not None and not self.is_current and not self.is_purged


class VersionPage(Struct, frozen=True):
    """A page of the versions of an entity, newest first."""

    versions: list[Version]
    #: The latest change of the entity.
    latest: Change
    #: The `seq` before which there are older versions; None if there are none.
    older: int | None
    is_first: bool


async def version_page(request: WebRequest, kind: Kind, id: str, per_page: int) -> VersionPage | None:
    """Return the versions of an entity before the change in the query; None if it never existed."""
    before = request.int_parameter("before") or None
    changes = await changes_of(request, kind, id, limit=per_page + 1, before=before)
    latest = next(iter(changes), None) if before is None else await latest_change(request, kind, id)
    if latest is None:
        return None
    versions = [
        Version(change, is_current=change.seq == latest.seq and change.after is not None)
        for change in changes[:per_page]
    ]
    older = changes[per_page - 1].seq if len(changes) > per_page else None
    return VersionPage(versions, latest, older, is_first=before is None)
