"""The pages of prompts: the list, and one prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, get_args

import msgspec
from msgspec import Struct

from dittybag.contracts.stored_prompts import prompt_result
from dittybag.domain.changes import Change
from dittybag.domain.errors import PromptNotFound
from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.prompts import Prompt, PromptOrder
from dittybag.protocol.jsonrpc import encode
from dittybag.services.prompt_service import PromptAddress
from dittybag.web.browser_requests import WebResponse, WebRequest, Route, redirect
from dittybag.web.pages import prompt_forms, prompt_history
from dittybag.web.pages.prompt_forms import RENDERED_LENGTH, tokens
from dittybag.web.pages.prompt_history import changes_of, prompt_of
from dittybag.web.pages.prompt_preview import preview_prompt, argument_values
from dittybag.web.pages.prompt_tags import tags_in_use
from dittybag.web.template_rendering import render_page

_PER_PAGE: Final = 50
#: So many tags are proposed.
_TAGS_SHOWN: Final = 20
#: So many prompts of libraries are looked through.
_LIBRARY_PROMPTS: Final = 10_000
#: As much of a message as is shown.
_MESSAGE_LENGTH: Final = 20_000


# The list


async def listed(request: WebRequest) -> WebResponse:
    """The prompts of the project, or those of the libraries."""
    if request.query.get("tab") == "libraries":
        return await _library_prompts(request)
    query = request.query.get("q", "")
    tags = _chosen_tags(request)
    order: PromptOrder = next(
        (o for o in get_args(PromptOrder) if o == request.query.get("order")), "updated"
    )
    current = request.int_parameter("page", 1, 1, 10**6)
    found = await request.workspace.prompts.filter(
        request.caller,
        query=query,
        tags=tags,
        order=order,
        limit=_PER_PAGE,
        offset=(current - 1) * _PER_PAGE,
    )
    in_use = await tags_in_use(request)
    return render_page(
        request,
        "prompts/prompt_list.html",
        found=found,
        query=query,
        order=order,
        tags=[_TagLink(tag, _with_tags(request, [t for t in tags if t != tag])) for tag in tags],
        more_tags=[
            _TagLink(tag.name, _with_tags(request, [*tags, tag.name]), tag.prompt_count)
            for tag in in_use
            if tag.name not in tags
        ][:_TAGS_SHOWN],
        tag_names=[tag.name for tag in in_use],
        tag_link=lambda name: _with_tags(request, [*tags, name] if name not in tags else tags),
        current=current,
        last=-(-found.total // _PER_PAGE),
        to=lambda number: request.with_query(page=number),
        deleted=await _deletion(request, request.query.get("deleted", "")),
    )


class _TagLink(Struct, frozen=True):
    name: str
    href: str
    count: int = 0


def _chosen_tags(request: WebRequest) -> list[str]:
    """The tags to filter by: those of the address, and one that was typed."""
    given = f"{request.query.get('tags', '')},{request.query.get('tag', '')}"[:2000].lower().split(",")
    return list(dict.fromkeys(tag.strip() for tag in given if tag.strip()))[:10]


def _with_tags(request: WebRequest, tags: list[str]) -> str:
    return request.with_query(tags=",".join(tags), tag=None, page=None, deleted=None)


async def _deletion(request: WebRequest, id: str) -> Change | None:
    """The deletion of a prompt that has just been deleted, to be undone."""
    if not id:
        return None
    latest = await changes_of(request, id, limit=1)
    return latest[0] if latest and latest[0].after is None else None


async def _library_prompts(request: WebRequest) -> WebResponse:
    query = request.query.get("q", "").casefold()
    found = [
        prompt
        for prompt in await request.context.libraries.page("", _LIBRARY_PROMPTS)
        if not query or query in _searched(prompt)
    ]
    current = request.int_parameter("page", 1, 1, 10**6)
    return render_page(
        request,
        "prompts/library_prompt_list.html",
        prompts=found[(current - 1) * _PER_PAGE : current * _PER_PAGE],
        total=len(found),
        query=request.query.get("q", ""),
        current=current,
        last=-(-len(found) // _PER_PAGE),
        to=lambda number: request.with_query(page=number),
    )


def _searched(prompt: LibraryPrompt) -> str:
    return f"{prompt.name}\n{prompt.title or ''}\n{prompt.description or ''}".casefold()


# One prompt


async def show(request: WebRequest) -> WebResponse:
    """A prompt: its text, a form for its arguments, and what an agent gets."""
    try:
        prompt = await prompt_of(request)
    except PromptNotFound:
        deletion = await _deletion(request, request.parameters["id"])
        if deletion is None:
            raise
        status = 200 if request.is_fragment else 404
        return render_page(request, "prompts/prompt_deleted.html", status=status, deletion=deletion)
    latest = await changes_of(request, prompt.id, limit=1)
    return render_page(
        request,
        "prompts/prompt_view.html",
        prompt=prompt,
        tab="prompt",
        view="source" if request.query.get("view") == "source" else "rendered",
        is_long=len(prompt.content) > RENDERED_LENGTH,
        actor=latest[0].actor if latest else "",
        result=await _result(request, prompt, {}),
        known=_declaration(prompt),
    )


class _Result(Struct, frozen=True, kw_only=True):
    """What becomes of a prompt with some values."""

    text: str = ""
    #: The protocol's message, as JSON.
    message: str = ""
    is_clipped: bool = False
    tokens: int = 0
    #: The argument that has no value yet.
    missing: str | None = None
    problem: str | None = None
    #: The line of the prompt that is to blame, and what stands there.
    line: int | None = None
    source: str = ""


async def _result(request: WebRequest, prompt: Prompt, values: Mapping[str, str]) -> _Result:
    trial = await preview_prompt(prompt.arguments, values, lambda given: request.context.templates.render_prompt(prompt, given))
    if trial.missing:
        return _Result(missing=trial.missing[0])
    if trial.problem:
        lines = prompt.content.split("\n")
        at = trial.line or 0
        return _Result(
            problem=trial.problem[:500],
            line=trial.line,
            source=lines[at - 1][:200] if 0 < at <= len(lines) else "",
        )
    text = trial.text
    shown = msgspec.json.format(encode(prompt_result(prompt.description, text)), indent=2).decode()
    return _Result(
        text=text,
        message=shown[:_MESSAGE_LENGTH],
        is_clipped=len(shown) > _MESSAGE_LENGTH,
        tokens=tokens(text),
    )


def _declaration(prompt: Prompt) -> str:
    """The arguments, to see whether a form for them is out of date."""
    return encode(prompt.arguments).decode()


async def rendered(request: WebRequest) -> WebResponse:
    """What becomes of the prompt with what was typed so far."""
    try:
        prompt = await prompt_of(request)
    except PromptNotFound:
        # The page says so already.
        return WebResponse(200)
    given = request.form or request.query
    return render_page(
        request,
        "prompts/prompt_result.html",
        prompt=prompt,
        result=await _result(request, prompt, argument_values(request, prompt.arguments)),
        is_outdated=given.get("known", "") != _declaration(prompt),
    )


async def deleted(request: WebRequest) -> WebResponse:
    address = PromptAddress(id=request.parameters["id"])
    prompt, _ = await request.workspace.prompts.delete(request.caller, address)
    return redirect(request.link("/prompts", deleted=prompt.id))


routes: Final = (
    Route("GET", "/prompts", listed),
    Route("GET", "/prompts/{id}", show),
    Route("GET", "/prompts/{id}/result", rendered),
    Route("POST", "/prompts/{id}/result", rendered),
    Route("POST", "/prompts/{id}/delete", deleted),
    *prompt_forms.routes,
    *prompt_history.routes,
)
