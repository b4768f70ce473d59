"""The prompt list and the page of a prompt."""

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
from dittybag.domain.queries import PromptQuery
from dittybag.protocol.jsonrpc import encode
from dittybag.services.prompt_service import PromptAddress
from dittybag.web.browser_requests import LONG_FORM_BYTES, Route, WebRequest, WebResponse, redirect
from dittybag.web.pages import prompt_forms, prompt_history
from dittybag.web.pages.prompt_forms import MAX_RENDERED_LENGTH, estimate_tokens
from dittybag.web.pages.prompt_history import find_prompt, prompt_changes
from dittybag.web.pages.prompt_preview import argument_values, preview_prompt
from dittybag.web.pages.prompt_tags import tags_in_use
from dittybag.web.template_rendering import render_page

_PER_PAGE: Final = 50
#: Maximum number of suggested tags.
_MAX_TAGS: Final = 20
#: Maximum number of matches of a filter; callers that need more must narrow it.
_MAX_MATCHES: Final = 1000
#: Maximum number of library prompts searched.
_MAX_LIBRARY_PROMPTS: Final = 10_000
#: Longer messages are cut.
_MAX_MESSAGE_LENGTH: Final = 20_000


# The list


async def show_prompts(request: WebRequest) -> WebResponse:
    """Show the prompts of the project, or the library prompts."""
    if request.query.get("tab") == "libraries":
        return await _library_prompts(request)
    query = request.query.get("q", "")
    tags = _selected_tags(request)
    order: PromptOrder = next(
        (candidate for candidate in get_args(PromptOrder) if candidate == request.query.get("order")),
        "updated",
    )
    current = request.int_parameter("page", 1, 1, 10**6)
    found = await request.workspace.prompts.page(
        request.caller,
        PromptQuery(
            project=request.caller.project,
            text=query,
            all_tags=tuple(tags),
            order=order,
            limit=_PER_PAGE,
            offset=(current - 1) * _PER_PAGE,
            max_matches=_MAX_MATCHES,
        ),
    )
    in_use = await tags_in_use(request)
    return render_page(
        request,
        "prompts/prompt_list.html",
        found=found,
        query=query,
        order=order,
        tags=[_TagLink(tag, _with_tags(request, [other for other in tags if other != tag])) for tag in tags],
        more_tags=[
            _TagLink(tag.name, _with_tags(request, [*tags, tag.name]), tag.prompt_count)
            for tag in in_use
            if tag.name not in tags
        ][:_MAX_TAGS],
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


def _selected_tags(request: WebRequest) -> list[str]:
    """Return the tags to filter by: those of the URL and the one just typed."""
    names = f"{request.query.get('tags', '')},{request.query.get('tag', '')}"[:2000].lower().split(",")
    return list(dict.fromkeys(tag.strip() for tag in names if tag.strip()))[:10]


def _with_tags(request: WebRequest, tags: list[str]) -> str:
    return request.with_query(tags=",".join(tags), tag=None, page=None, deleted=None)


async def _deletion(request: WebRequest, id: str) -> Change | None:
    """Return the change that deleted a prompt, to offer undo; None if the prompt exists or was purged."""
    if not id:
        return None
    latest = await prompt_changes(request, id, limit=1)
    return latest[0] if latest and latest[0].after is None and latest[0].purged is None else None


async def _library_prompts(request: WebRequest) -> WebResponse:
    query = request.query.get("q", "").casefold()
    found = [
        prompt
        for prompt in await request.context.libraries.page("", _MAX_LIBRARY_PROMPTS)
        if not query or query in _searched_text(prompt)
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


def _searched_text(prompt: LibraryPrompt) -> str:
    return f"{prompt.name}\n{prompt.title or ''}\n{prompt.description or ''}".casefold()


# One prompt


async def show_prompt(request: WebRequest) -> WebResponse:
    """Show a prompt: its text, a form for its arguments and the message for agents."""
    try:
        prompt = await find_prompt(request)
    except PromptNotFound:
        deletion = await _deletion(request, request.parameters["id"])
        if deletion is None:
            raise
        status = 200 if request.is_fragment else 404
        return render_page(request, "prompts/prompt_deleted.html", status=status, deletion=deletion)
    latest = await prompt_changes(request, prompt.id, limit=1)
    return render_page(
        request,
        "prompts/prompt_view.html",
        prompt=prompt,
        tab="prompt",
        view="source" if request.query.get("view") == "source" else "rendered",
        is_long=len(prompt.content) > MAX_RENDERED_LENGTH,
        actor=latest[0].actor if latest else "",
        result=await _result(request, prompt, {}),
        known=_argument_fingerprint(prompt),
    )


class _PromptResult(Struct, frozen=True, kw_only=True):
    """A prompt rendered with argument values."""

    text: str = ""
    #: The MCP message as JSON.
    message: str = ""
    is_clipped: bool = False
    tokens: int = 0
    #: A required argument without a value.
    missing: str | None = None
    problem: str | None = None
    #: The line of the error and its source.
    line: int | None = None
    source: str = ""


async def _result(request: WebRequest, prompt: Prompt, values: Mapping[str, str]) -> _PromptResult:
    preview = await preview_prompt(
        prompt.arguments,
        values,
        lambda given: request.context.templates.render_prompt(prompt, given, client=request.client_key),
    )
    if preview.missing:
        return _PromptResult(missing=preview.missing[0])
    if preview.problem:
        lines = prompt.content.split("\n")
        at = preview.line or 0
        return _PromptResult(
            problem=preview.problem[:500],
            line=preview.line,
            source=lines[at - 1][:200] if 0 < at <= len(lines) else "",
        )
    text = preview.text
    shown = msgspec.json.format(encode(prompt_result(prompt.description, text)), indent=2).decode()
    return _PromptResult(
        text=text,
        message=shown[:_MAX_MESSAGE_LENGTH],
        is_clipped=len(shown) > _MAX_MESSAGE_LENGTH,
        tokens=estimate_tokens(text),
    )


def _argument_fingerprint(prompt: Prompt) -> str:
    """Return the arguments as JSON, to detect that a form is out of date."""
    return encode(prompt.arguments).decode()


async def render_result(request: WebRequest) -> WebResponse:
    """Return the rendered prompt as a fragment while its arguments are being typed."""
    try:
        prompt = await find_prompt(request)
    except PromptNotFound:
        # The page already shows that.
        return WebResponse(200)
    form = request.form or request.query
    return render_page(
        request,
        "prompts/prompt_result.html",
        prompt=prompt,
        result=await _result(request, prompt, argument_values(request, prompt.arguments)),
        is_outdated=form.get("known", "") != _argument_fingerprint(prompt),
    )


async def delete_prompt(request: WebRequest) -> WebResponse:
    address = PromptAddress(id=request.parameters["id"])
    prompt, _ = await request.workspace.prompts.delete(request.caller, address)
    return redirect(request.link("/prompts", deleted=prompt.id))


routes: Final = (
    Route("GET", "/prompts", show_prompts),
    Route("GET", "/prompts/{id}", show_prompt),
    Route("GET", "/prompts/{id}/result", render_result),
    Route("POST", "/prompts/{id}/result", render_result, form_bytes=LONG_FORM_BYTES),
    Route("POST", "/prompts/{id}/delete", delete_prompt),
    *prompt_forms.routes,
    *prompt_history.routes,
)
