"""The history of a prompt: its versions and their diffs."""

from __future__ import annotations

from typing import Final

from dittybag.domain.changes import Change, Purged
from dittybag.domain.entities import Entity
from dittybag.domain.errors import ChangeNotFound, ChangePurged, PromptNotFound
from dittybag.domain.prompts import Prompt
from dittybag.services.prompt_service import PromptAddress
from dittybag.web.browser_requests import WebRequest, WebResponse
from dittybag.web.entity_diffs import differences
from dittybag.web.pages.entity_history import changes_of, latest_change, version_page
from dittybag.web.pages.prompt_head import stored_head
from dittybag.web.template_rendering import render_page

#: Each version contains the complete text.
_VERSIONS_PER_PAGE: Final = 20


async def find_prompt(request: WebRequest) -> Prompt:
    """Return the prompt of the path. Raises `PromptNotFound`."""
    return await request.workspace.prompts.get(request.caller, PromptAddress(id=request.parameters["id"]))


async def show_history(request: WebRequest) -> WebResponse:
    """Show all versions of a prompt, even if it was deleted."""
    reference = request.parameters["id"]
    page = await version_page(request, "prompt", reference, _VERSIONS_PER_PAGE)
    if page is None:
        raise PromptNotFound(reference, request.project.name)
    prompt, exists = _known_state(page.latest, page.latest.state), page.latest.after is not None
    assert prompt is not None
    return render_page(
        request,
        "prompts/prompt_history.html",
        prompt=prompt,
        head=await stored_head(request, prompt, "history", exists=exists, actor=page.latest.actor),
        page=page,
        exists=exists,
    )


async def show_comparison(request: WebRequest) -> WebResponse:
    """Show the diff of a change, or the diff to the current version."""
    change = await _find_change(request)
    to_current = request.query.get("with") == "current"
    before, after = change.before, change.after
    latest = await latest_change(request, "prompt", change.entity)
    if to_current:
        before, after = change.after, None if latest is None else latest.after
    current = _known_state(change, change.state if latest is None else latest.state)
    assert current is not None
    exists = latest is not None and latest.after is not None
    return render_page(
        request,
        "prompts/prompt_compare.html",
        change=change,
        prompt=current,
        head=await stored_head(
            request, current, "history", exists=exists, actor="" if latest is None else latest.actor
        ),
        version=None if change.after is None else change.after.version,
        to_current=to_current,
        differences=differences(_known_state(change, before), _known_state(change, after)),
    )


async def _find_change(request: WebRequest) -> Change:
    """Return the change of the path. Raises `ChangeNotFound`."""
    seq = request.number_in_path("seq")
    found = await changes_of(request, "prompt", request.parameters["id"], limit=1, before=seq + 1)
    if not found or found[0].seq != seq:
        raise ChangeNotFound(seq)
    return found[0]


def _known_state(change: Change, state: Entity | Purged | None) -> Prompt | None:
    """Return a state of a prompt. Raises `ChangePurged`."""
    if isinstance(state, Purged):
        raise ChangePurged(change.seq, state.by, state.at)
    assert isinstance(state, Prompt | None)
    return state
