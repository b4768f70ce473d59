"""The form of a prompt, resource or task: values as typed, problems by field, and conflicting edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.entities import ENTITY_TYPES, Entity, Field, Kind, key_of
from dittybag.domain.errors import (
    Conflict,
    DittybagError,
    Invalid,
    NameTaken,
    NotAllowed,
    Problem,
    SeveralConflicts,
    StorageError,
    TitleTaken,
    UriTaken,
)
from dittybag.web.browser_requests import WebRequest, WebResponse
from dittybag.web.entity_diffs import Contents, Difference, differences
from dittybag.web.pages.entity_history import changes_of, latest_change
from dittybag.web.template_rendering import render_page

#: Errors that a form shows, with what was typed.
FORM_ERRORS: Final = (Invalid, Conflict, NotAllowed, StorageError)
_TAKEN: Final[dict[type[DittybagError], str]] = {NameTaken: "name", TitleTaken: "title", UriTaken: "uri"}
#: The number of versions searched for the one that an edit started from.
_SEARCHED_VERSIONS: Final = 20


class EditConflict(Struct, frozen=True):
    """An edit that someone else saved first."""

    actor: str
    at: int
    #: From the saved version to the version in the form.
    between: list[Difference]
    #: From the version that the edit started from to the saved one; None if it is not known.
    theirs: list[Difference] | None


class EntityForm(Struct, frozen=True, kw_only=True):
    """The fields of a form, which may be invalid."""

    kind: Kind
    values: Mapping[str, str]
    #: The version that the edit started from; 0 for a new entity.
    version: int = 0
    problems: Sequence[Problem] = ()
    conflict: EditConflict | None = None

    @classmethod
    def stored(cls, kind: Kind, entity: Any) -> Self:
        """Return the form of an entity."""
        values = {name: ENTITY_TYPES[kind].field(name).text(entity) for name in form_fields(kind)}
        return cls(kind=kind, values=values, version=entity.version)

    @classmethod
    def typed(cls, kind: Kind, request: WebRequest) -> Self:
        """Return the submitted form."""
        values = {name: request.form[name] for name in form_fields(kind) if name in request.form}
        return cls(kind=kind, values=values, version=request.number_in_form("version"))

    def field(self, name: str) -> Field:
        """Return the description of a field. The content of a resource is stored separately."""
        is_content = self.kind == "resource" and name == "content"
        return ENTITY_TYPES[self.kind].field("sha256" if is_content else name)

    def value(self, name: str) -> str:
        return self.values.get(name, "")

    def messages(self, name: str) -> list[str]:
        """Return the problems with a field."""
        return [problem.message for problem in self.problems if problem.field == name]

    def with_error(self, error: DittybagError) -> Self:
        """Return the form with the problems of an error."""
        return replace(self, problems=problems_of(error))

    async def with_conflict(
        self, request: WebRequest, theirs: Any, mine: Entity, contents: Contents = (None, None)
    ) -> Self:
        """Return the form with both versions; saving it again overwrites the saved one."""
        changes = await changes_of(request, self.kind, key_of(theirs), limit=_SEARCHED_VERSIONS)
        states = (change.after for change in changes if change.after is not None and change.purged is None)
        original: Any = next((state for state in states if state.version == self.version), None)
        conflict = EditConflict(
            changes[0].actor if changes else "Someone",
            theirs.updated_at,
            differences(theirs, mine, contents),
            # The contents of older versions of a resource are in its history.
            None if original is None or self.kind == "resource" else differences(original, theirs),
        )
        return replace(self, version=theirs.version, conflict=conflict)


def form_fields(kind: Kind) -> list[str]:
    """Return the names of the fields that a form has as one text each."""
    return [
        field.name
        for field in ENTITY_TYPES[kind].edited
        if field.format in ("line", "text", "number", "list")
    ]


def problems_of(error: DittybagError) -> list[Problem]:
    """Return the problems of an error by form field."""
    if isinstance(error, Invalid):
        return list(error.problems)
    if isinstance(error, SeveralConflicts):
        return [problem for conflict in error.conflicts for problem in problems_of(conflict)]
    return [Problem(_TAKEN.get(type(error), ""), str(error))]


async def show_change_warning(kind: Kind, request: WebRequest) -> WebResponse:
    """Return a warning for an open form if someone else changed or deleted the entity."""
    latest = await latest_change(request, kind, request.parameters.get("id") or request.query.get("id", ""))
    if latest is None or (latest.after and latest.after.version == request.int_parameter("version")):
        return WebResponse(204)
    return render_page(request, "changed_meanwhile.html", kind=kind, latest=latest)
