"""The history of a prompt: its versions, diffs and restore."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from dittybag.domain.changes import Change, Purged
from dittybag.domain.entities import Entity
from dittybag.domain.errors import ChangeNotFound, ChangePurged, Conflict, PromptNotFound
from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import ChangeQuery
from dittybag.services.history_service import UndoSelection
from dittybag.services.prompt_service import PromptAddress
from dittybag.web.browser_requests import Route, WebRequest, WebResponse, redirect
from dittybag.web.side_by_side import DiffRow, side_by_side
from dittybag.web.template_rendering import render_page

#: Each version contains the complete text.
_VERSIONS_PER_PAGE: Final = 20
#: The titles of the fields of a prompt, in the order of the form.
_FIELD_TITLES: Final = {
    "title": "Title",
    "name": "Name",
    "description": "Description",
    "tags": "Tags",
    "content": "Content",
    "arguments": "Arguments",
}


async def find_prompt(request: WebRequest) -> Prompt:
    """Return the prompt of the path. Raises `PromptNotFound`."""
    return await request.workspace.prompts.get(request.caller, PromptAddress(id=request.parameters["id"]))


async def prompt_changes(
    request: WebRequest, id: str, *, limit: int, before: int | None = None
) -> list[Change]:
    """Return the changes of a prompt, newest first."""
    query = ChangeQuery(
        project=request.caller.project, kind="prompt", entity=id.lower(), limit=limit, before=before
    )
    return await request.workspace.history.page(request.caller, query)


async def show_history(request: WebRequest) -> WebResponse:
    """Show all versions of a prompt, even if it was deleted."""
    prompt = request.parameters["id"]
    before = request.int_parameter("before", 0, 0, 2**62) or None
    changes = await prompt_changes(request, prompt, limit=_VERSIONS_PER_PAGE + 1, before=before)
    if not changes:
        raise PromptNotFound(prompt, request.project.name)
    latest = changes[0] if before is None else (await prompt_changes(request, prompt, limit=1))[0]
    shown = changes[:_VERSIONS_PER_PAGE]
    return render_page(
        request,
        "prompts/prompt_history.html",
        prompt=_latest_state(latest),
        tab="history",
        exists=latest.after is not None,
        latest=latest.seq,
        versions=[_PromptVersion.from_change(change) for change in shown],
        next=shown[-1].seq if len(changes) > len(shown) else None,
        is_first=before is None,
    )


class _PromptVersion(Struct, frozen=True):
    """A version in the history of a prompt."""

    seq: int
    at: int
    actor: str
    action: str
    #: None if the prompt was deleted.
    number: int | None
    #: The titles of the changed fields.
    parts: list[str]
    is_purged: bool

    @classmethod
    def from_change(cls, change: Change) -> _PromptVersion:
        before, after = _as_prompt(change.before), _as_prompt(change.after)
        changed_fields = [] if before is None or after is None else _changed_fields(before, after)
        names = [_FIELD_TITLES[part].lower() for part in changed_fields]
        number = None if change.after is None else change.after.version
        is_purged = isinstance(change.state, Purged)
        return cls(change.seq, change.at, change.actor, change.action, number, names, is_purged)


async def show_comparison(request: WebRequest) -> WebResponse:
    """Show the diff of a change, or the diff to the current version."""
    change = await _find_change(request)
    to_current = request.query.get("with") == "current"
    before, after = change.before, change.after
    if to_current:
        latest = (await prompt_changes(request, change.entity, limit=1))[0]
        before, after = change.after, latest.after
    for state in (before, after):
        if isinstance(state, Purged):
            raise ChangePurged(change.seq, state.by, state.at)
    return render_page(
        request,
        "prompts/prompt_compare.html",
        change=change,
        prompt=_latest_state(change),
        version=None if change.after is None else change.after.version,
        to_current=to_current,
        differences=differences(_as_prompt(before), _as_prompt(after)),
    )


class Difference(Struct, frozen=True):
    """The diff of one field."""

    part: str
    rows: list[DiffRow]


def differences(before: Prompt | None, after: Prompt | None) -> list[Difference]:
    """Return the diffs of the fields that differ."""
    return [
        Difference(_FIELD_TITLES[part], side_by_side(_field_text(before, part), _field_text(after, part)))
        for part in _changed_fields(before, after)
    ]


def _changed_fields(before: Prompt | None, after: Prompt | None) -> list[str]:
    return [part for part in _FIELD_TITLES if _field_text(before, part) != _field_text(after, part)]


def _field_text(prompt: Prompt | None, part: str) -> str:
    """Return a field of a prompt as text."""
    value: Any = "" if prompt is None else getattr(prompt, part) or ""
    if part == "tags":
        return ", ".join(value)
    if part == "arguments":
        return "\n\n".join(
            "\n".join(
                f"{name}: {_format_value(item_value)}"
                for name, item_value in asdict(item).items()
                if item_value
            )
            for item in value
        )
    return str(value)


def _format_value(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else "yes" if value is True else str(value)


async def restore_version(request: WebRequest) -> WebResponse:
    """Restore the version of a prompt after a change."""
    change = await _find_change(request)
    await request.workspace.history.restore(request.caller, change.seq, project=request.caller.project)
    number = change.after.version if change.after is not None else ""
    return redirect(request.link(f"/prompts/{change.entity}"), f"Restored version {number} as a new version")


async def undo_deletion(request: WebRequest) -> WebResponse:
    """Undo the deletion of a prompt."""
    change = await _find_change(request)
    if change.after is not None:
        raise Conflict(
            "Only a deletion can be undone here; restore an older version from the history instead"
        )
    selection = UndoSelection(seq=change.seq, project=request.caller.project)
    await request.workspace.history.undo(request.caller, selection)
    return redirect(request.link(f"/prompts/{change.entity}"), "Prompt restored")


async def _find_change(request: WebRequest) -> Change:
    """Return the change of the path. Raises `ChangeNotFound`."""
    text = request.parameters["seq"]
    seq = int(text) if text.isdecimal() and len(text) < 19 else 0
    found = await prompt_changes(request, request.parameters["id"], limit=1, before=seq + 1)
    if not found or found[0].seq != seq:
        raise ChangeNotFound(seq)
    return found[0]


def _as_prompt(state: Entity | Purged | None) -> Prompt | None:
    return state if isinstance(state, Prompt) else None


def _latest_state(change: Change) -> Prompt:
    """Return the prompt after a change, or before its deletion. Raises `ChangePurged`."""
    state = change.state
    if isinstance(state, Purged):
        raise ChangePurged(change.seq, state.by, state.at)
    assert isinstance(state, Prompt)
    return state


routes: Final = (
    Route("GET", "/prompts/{id}/history", show_history),
    Route("GET", "/prompts/{id}/history/{seq}", show_comparison),
    Route("POST", "/prompts/{id}/history/{seq}/restore", restore_version),
    Route("POST", "/prompts/{id}/history/{seq}/undo", undo_deletion),
)
