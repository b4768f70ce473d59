"""The prompt list and the page of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from minijinja import Markup

from dittybag.domain.errors import PromptNotFound
from dittybag.domain.prompts import Prompt, PromptOrder
from dittybag.domain.queries import PromptQuery
from dittybag.protocol.jsonrpc import encode
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.template_arguments import describe_found
from dittybag.web.browser_requests import PER_PAGE, WebRequest, WebResponse, redirect
from dittybag.web.filter_chips import filter_chips, value_chips, without_filters
from dittybag.web.pages.entity_history import deletion_of, seq_to_undo
from dittybag.web.pages.library_pages import show_libraries
from dittybag.web.pages.prompt_forms import MAX_RENDERED_LENGTH, message_sources
from dittybag.web.pages.prompt_head import Tab, stored_head
from dittybag.web.pages.prompt_history import find_prompt
from dittybag.web.pages.prompt_preview import argument_values, preview_prompt, result_values
from dittybag.web.shell_commands import render_command
from dittybag.web.template_rendering import render_page
from dittybag.web.variable_marks import mark_variables

#: Maximum number of suggested tags.
_MAX_TAGS: Final = 20
#: Maximum number of matches of a filter; callers that need more must narrow it.
_MAX_MATCHES: Final = 1000


# The list


async def show_prompts(request: WebRequest) -> WebResponse:
    """Show the prompts of the project, or the libraries."""
    if request.query.get("tab") == "libraries":
        return await show_libraries(request)
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


# One prompt


async def show_prompt(request: WebRequest) -> WebResponse:
    """Show a prompt: a form for its arguments and the result, or its template."""
    try:
        prompt = await find_prompt(request)
    except PromptNotFound:
        deletion = await deletion_of(request, "prompt", request.parameters["id"])
        if deletion is None:
            raise
        status = 200 if request.is_fragment else 404
        return render_page(request, "prompts/prompt_deleted.html", status=status, deletion=deletion)
    tab: Tab = "template" if request.query.get("tab") == "template" else "use"
    values = argument_values(request, prompt.arguments)
    return render_page(
        request,
        "prompts/prompt_view.html",
        prompt=prompt,
        head=await stored_head(request, prompt, tab),
        source=prompt.content,
        marked=Markup(mark_variables(prompt.content, prompt.arguments)) if tab == "template" else "",
        view="rendered" if request.query.get("view") == "rendered" else "source",
        is_long=len(prompt.content) > MAX_RENDERED_LENGTH,
        messages=message_sources(prompt.content),
        offered=await request.context.templates.offered_arguments(prompt) if request.can_write else (),
        known=_argument_fingerprint(prompt),
        values=values,
        **(await _result(request, prompt, values) if tab == "use" else {}),
    )


async def _result(request: WebRequest, prompt: Prompt, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the prompt rendered with argument values, the MCP message as JSON, and the shell command."""
    preview = await preview_prompt(
        prompt.arguments,
        values,
        lambda given: request.context.templates.render_messages(prompt, given, client=request.client_key),
    )
    command = render_command(prompt.name, prompt.arguments, values, project=request.project.name)
    return result_values(preview, prompt, prompt.content, command)


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


async def add_arguments(request: WebRequest) -> WebResponse:
    """Make the variables of a prompt arguments that are none yet."""
    prompt = await find_prompt(request)
    link = request.link(f"/prompts/{prompt.id}")
    offered = await request.context.templates.offered_arguments(prompt)
    if not offered:
        return redirect(link, "All variables of this prompt are already arguments")
    change = PromptChange(arguments=prompt.arguments + offered)
    address = PromptAddress(id=prompt.id)
    saved, _ = await request.workspace.prompts.update(request.caller, address, change, version=prompt.version)
    found = describe_found(offered)
    undo = await seq_to_undo(request, "prompt", prompt.id, saved.version)
    return redirect(link, found[0].upper() + found[1:], undo=undo)


async def show_text(request: WebRequest) -> WebResponse:
    """Return the text of a prompt, for a script that copies it."""
    prompt = await find_prompt(request)
    headers = ((b"cache-control", b"no-store"),)
    return WebResponse(200, prompt.content.encode("utf-8", "replace"), b"text/plain; charset=utf-8", headers)


async def delete_prompt(request: WebRequest) -> WebResponse:
    address = PromptAddress(id=request.parameters["id"])
    prompt, _ = await request.workspace.prompts.delete(request.caller, address)
    undo = await seq_to_undo(request, "prompt", prompt.id, None)
    return redirect(request.link("/prompts"), f"Deleted “{prompt.label}”", undo=undo)
