"""The history of a prompt: its versions, what has changed, and bringing it back."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from dittybag.domain.changes import Change, Entity
from dittybag.domain.errors import ChangeNotFound, Conflict, PromptNotFound
from dittybag.domain.prompts import Prompt
from dittybag.services.prompt_service import PromptAddress
from dittybag.web.browser_requests import WebResponse, WebRequest, Route, redirect
from dittybag.web.side_by_side import DiffRow, side_by_side
from dittybag.web.template_rendering import render_page

#: Each version of a prompt holds all of its text.
_VERSIONS_PER_PAGE: Final = 20
#: The parts of a prompt that people change, as they are called, in the order of the form.
_PARTS: Final = {
    "title": "Title",
    "name": "Name",
    "description": "Description",
    "tags": "Tags",
    "content": "Content",
    "arguments": "Arguments",
}


async def prompt_of(request: WebRequest) -> Prompt:
    """The prompt that the address names. Raises `PromptNotFound`."""
    return await request.workspace.prompts.get(request.caller, PromptAddress(id=request.parameters["id"]))


async def changes_of(request: WebRequest, id: str, *, limit: int, before: int | None = None) -> list[Change]:
    """What happened to a prompt, the newest first."""
    return await request.workspace.history.page(
        request.caller, kind="prompt", entity=id.lower(), limit=limit, before=before
    )


async def history(request: WebRequest) -> WebResponse:
    """All versions of a prompt, also of one that is gone."""
    prompt = request.parameters["id"]
    before = request.int_parameter("before", 0, 0, 2**62) or None
    changes = await changes_of(request, prompt, limit=_VERSIONS_PER_PAGE + 1, before=before)
    if not changes:
        raise PromptNotFound(prompt, request.project.name)
    latest = changes[0] if before is None else (await changes_of(request, prompt, limit=1))[0]
    shown = changes[:_VERSIONS_PER_PAGE]
    return render_page(
        request,
        "prompts/prompt_history.html",
        prompt=_state(latest),
        tab="history",
        is_there=latest.after is not None,
        latest=latest.seq,
        versions=[_Version.of(change) for change in shown],
        next=shown[-1].seq if len(changes) > len(shown) else None,
        is_first=before is None,
    )


class _Version(Struct, frozen=True):
    """A change of a prompt, as the history lists it."""

    seq: int
    at: int
    actor: str
    action: str
    #: Nothing, if the prompt was deleted.
    number: int | None
    #: What has changed, in words.
    parts: list[str]

    @classmethod
    def of(cls, change: Change) -> _Version:
        before, after = _as_prompt(change.before), _as_prompt(change.after)
        differing = [] if before is None or after is None else _differing(before, after)
        names = [_PARTS[part].lower() for part in differing]
        number = None if after is None else after.version
        return cls(change.seq, change.at, change.actor, change.action, number, names)


async def compared(request: WebRequest) -> WebResponse:
    """What a change has changed, or what has changed since."""
    change = await _change(request)
    to_current = request.query.get("with") == "current"
    before, after = change.before, change.after
    if to_current:
        latest = (await changes_of(request, change.entity, limit=1))[0]
        before, after = change.after, latest.after
    return render_page(
        request,
        "prompts/prompt_compare.html",
        change=change,
        prompt=_state(change),
        version=None if change.after is None else change.after.version,
        to_current=to_current,
        differences=differences(_as_prompt(before), _as_prompt(after)),
    )


class Difference(Struct, frozen=True):
    """A part of a prompt that two versions have differently."""

    part: str
    rows: list[DiffRow]


def differences(before: Prompt | None, after: Prompt | None) -> list[Difference]:
    """The parts that differ, side by side."""
    return [
        Difference(_PARTS[part], side_by_side(_text(before, part), _text(after, part)))
        for part in _differing(before, after)
    ]


def _differing(before: Prompt | None, after: Prompt | None) -> list[str]:
    return [part for part in _PARTS if _text(before, part) != _text(after, part)]


def _text(prompt: Prompt | None, part: str) -> str:
    """A part of a prompt as lines."""
    value: Any = "" if prompt is None else getattr(prompt, part) or ""
    if part == "tags":
        return ", ".join(value)
    if part == "arguments":
        return "\n\n".join(
            "\n".join(f"{name}: {_words(word)}" for name, word in asdict(item).items() if word)
            for item in value
        )
    return str(value)


def _words(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else "yes" if value is True else str(value)


async def restored(request: WebRequest) -> WebResponse:
    """Make the prompt what it was after a change."""
    change = await _change(request)
    await request.workspace.history.restore(request.caller, change.seq)
    number = change.after.version if change.after is not None else ""
    return redirect(request.link(f"/prompts/{change.entity}"), f"Version {number} is back, as a new version")


async def undone(request: WebRequest) -> WebResponse:
    """Take back the deletion of a prompt."""
    change = await _change(request)
    if change.after is not None:
        raise Conflict(
            "Only a deletion can be undone here; an older version can be restored from the history"
        )
    await request.workspace.history.undo(request.caller, change.seq)
    return redirect(request.link(f"/prompts/{change.entity}"), "The prompt is back")


async def _change(request: WebRequest) -> Change:
    """The change that is meant, of the prompt that is meant. Raises `ChangeNotFound`."""
    text = request.parameters["seq"]
    seq = int(text) if text.isdecimal() and len(text) < 19 else 0
    found = await changes_of(request, request.parameters["id"], limit=1, before=seq + 1)
    if not found or found[0].seq != seq:
        raise ChangeNotFound(seq)
    return found[0]


def _as_prompt(state: Entity | None) -> Prompt | None:
    assert isinstance(state, Prompt | None)
    return state


def _state(change: Change) -> Prompt:
    """The prompt after a change, or what it was before it was deleted."""
    state = change.after if change.after is not None else change.before
    assert isinstance(state, Prompt)
    return state


routes: Final = (
    Route("GET", "/prompts/{id}/history", history),
    Route("GET", "/prompts/{id}/history/{seq}", compared),
    Route("POST", "/prompts/{id}/history/{seq}/restore", restored),
    Route("POST", "/prompts/{id}/history/{seq}/undo", undone),
)
