"""The prompt list and the page of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

import msgspec

from dittybag.contracts.prompt_rendering import prompt_result
from dittybag.domain.errors import PromptNotFound
from dittybag.domain.prompts import Prompt, PromptOrder
from dittybag.domain.queries import PromptQuery
from dittybag.protocol.jsonrpc import encode
from dittybag.services.prompt_service import PromptAddress
from dittybag.web.browser_requests import PER_PAGE, WebRequest, WebResponse, redirect
from dittybag.web.filter_chips import filter_chips, value_chips, without_filters
from dittybag.web.library_checks import search_prompts
from dittybag.web.pages.entity_history import deletion_of, latest_change, seq_to_undo
from dittybag.web.pages.prompt_forms import MAX_RENDERED_LENGTH, estimate_tokens, message_sources
from dittybag.web.pages.prompt_history import find_prompt
from dittybag.web.pages.prompt_preview import argument_values, preview_prompt
from dittybag.web.template_rendering import render_page

#: Maximum number of suggested tags.
_MAX_TAGS: Final = 20
#: Maximum number of matches of a filter; callers that need more must narrow it.
_MAX_MATCHES: Final = 1000
#: Maximum number of matching library prompts.
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
    order: PromptOrder = request.chosen("order", get_args(PromptOrder), "updated")
    found = await request.workspace.prompts.page(
        request.caller,
        PromptQuery(
            project=request.caller.project,
            text=query,
            all_tags=tuple(tags),
            order=order,
            limit=PER_PAGE,
            offset=request.offset,
            max_matches=_MAX_MATCHES,
        ),
    )
    in_use = await request.context.tags.find(request.caller)
    chips = [*filter_chips(request, [("q", "Text", query)]), *value_chips(request, "tags", "Tag", tags)]
    return render_page(
        request,
        "prompts/prompt_list.html",
        found=found,
        query=query,
        order=order,
        chips=chips,
        clear=without_filters(request, ["q", "tags", "tag"]),
        tags=tags,
        more_tags=[
            (tag.name, _with_tags(request, [*tags, tag.name]), tag.prompt_count)
            for tag in in_use
            if tag.name not in tags
        ][:_MAX_TAGS],
        tag_names=[tag.name for tag in in_use],
        tag_link=lambda name: _with_tags(request, [*tags, name] if name not in tags else tags),
        pages=request.pages(found.total),
    )


def _selected_tags(request: WebRequest) -> list[str]:
    """Return the tags to filter by: those of the URL and the one just typed."""
    names = f"{request.query.get('tags', '')},{request.query.get('tag', '')}"[:2000].lower().split(",")
    return list(dict.fromkeys(tag.strip() for tag in names if tag.strip()))[:10]


def _with_tags(request: WebRequest, tags: list[str]) -> str:
    return request.with_query(tags=",".join(tags), tag=None, page=None)


async def _library_prompts(request: WebRequest) -> WebResponse:
    query = request.query.get("q", "")
    found = await search_prompts(request.context.libraries, query, _MAX_LIBRARY_PROMPTS)
    return render_page(
        request,
        "prompts/library_prompt_list.html",
        prompts=found[request.offset : request.offset + PER_PAGE],
        total=len(found),
        query=query,
        chips=filter_chips(request, [("q", "Text", query)]),
        clear=without_filters(request, ["q"]),
        pages=request.pages(len(found)),
    )


# One prompt


async def show_prompt(request: WebRequest) -> WebResponse:
    """Show a prompt: its text, a form for its arguments and the message for agents."""
    try:
        prompt = await find_prompt(request)
    except PromptNotFound:
        deletion = await deletion_of(request, "prompt", request.parameters["id"])
        if deletion is None:
            raise
        status = 200 if request.is_fragment else 404
        return render_page(request, "prompts/prompt_deleted.html", status=status, deletion=deletion)
    latest = await latest_change(request, "prompt", prompt.id)
    return render_page(
        request,
        "prompts/prompt_view.html",
        prompt=prompt,
        view="source" if request.query.get("view") == "source" else "rendered",
        is_long=len(prompt.content) > MAX_RENDERED_LENGTH,
        messages=message_sources(prompt.content),
        actor="" if latest is None else latest.actor,
        known=_argument_fingerprint(prompt),
        **await _result(request, prompt, {}),
    )


async def _result(request: WebRequest, prompt: Prompt, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the prompt rendered with argument values, and the MCP message as JSON."""
    preview = await preview_prompt(
        prompt.arguments,
        values,
        lambda given: request.context.templates.render_messages(prompt, given, client=request.client_key),
    )
    lines = prompt.content.split("\n")
    message = ""
    if not preview.missing and not preview.problem:
        result = encode(prompt_result(prompt.description, preview.messages))
        message = msgspec.json.format(result, indent=2).decode()
    return {
        "result": preview,
        "source": lines[preview.line - 1][:200] if preview.line and preview.line <= len(lines) else "",
        "message": message[:_MAX_MESSAGE_LENGTH],
        "is_clipped": len(message) > _MAX_MESSAGE_LENGTH,
        "tokens": estimate_tokens(preview.text),
    }


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
        is_outdated=form.get("known", "") != _argument_fingerprint(prompt),
        **await _result(request, prompt, argument_values(request, prompt.arguments)),
    )


async def delete_prompt(request: WebRequest) -> WebResponse:
    address = PromptAddress(id=request.parameters["id"])
    prompt, _ = await request.workspace.prompts.delete(request.caller, address)
    undo = await seq_to_undo(request, "prompt", prompt.id, None)
    return redirect(request.link("/prompts"), f"Deleted “{prompt.label}”", undo=undo)
