"""The resource list and the page of a resource: preview, source, history and download."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any, Final, cast, get_args
from urllib.parse import quote

import msgspec

from dittybag.contracts.stored_resources import StoredResources
from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.changes import Change
from dittybag.domain.errors import DittybagError, ResourceNotFound
from dittybag.domain.mime_types import extension_of
from dittybag.domain.queries import ResourceOrder, ResourceQuery
from dittybag.domain.resources import CONTENT_BYTES, Resource
from dittybag.http.asgi_messages import Header
from dittybag.protocol import uri_templates
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.request_context import Context
from dittybag.protocol.wire_errors import ProtocolError, UnknownResource
from dittybag.services.caller import Caller
from dittybag.services.resource_service import ResourcePage
from dittybag.web.browser_requests import PER_PAGE, WebRequest, WebResponse
from dittybag.web.diff_rows import DiffRow, diff_rows
from dittybag.web.filter_chips import filter_chips, without_filters
from dittybag.web.pages.entity_history import version_page
from dittybag.web.resource_previews import (
    SOURCE_LENGTH,
    SOURCE_LINES,
    excerpt_of,
    image_type,
    preview_of,
    text_preview,
)
from dittybag.web.template_rendering import render_page

_TABS: Final = ("preview", "source", "agent", "history")
#: Longer text and base64 is cut in the view of what agents receive.
_MAX_AGENT_LENGTH: Final = 5000
_VERSIONS_PER_PAGE: Final = 50
#: Longer texts are not compared.
_MAX_DIFF_BYTES: Final = 1024 * 1024
_VARIABLE_PREFIX: Final = "v."

#: Opened directly, the response runs in a sandbox without permissions.
_SANDBOX: Final[Header] = (b"content-security-policy", b"sandbox; default-src 'none'")
_PRIVATE: Final[Header] = (b"cache-control", b"private, no-store")


async def show_resources(request: WebRequest) -> WebResponse:
    """Show the resources of the project, with filters."""
    text = request.query.get("q", "").strip()[:200]
    kind = request.query.get("type") or None
    order: ResourceOrder = request.chosen("sort", get_args(ResourceOrder), "updated")
    found = await request.workspace.resources.page(
        request.caller,
        ResourceQuery(
            project=request.caller.project,
            text=text.replace("\0", ""),
            mime_type=kind,
            order=order,
            limit=PER_PAGE,
            offset=request.offset,
        ),
    )
    return render_page(
        request,
        "resources/resource_list.html",
        found=found,
        text=text,
        kind=kind or "",
        types=[*((name, f"{name} ({count:,})") for name, count in found.types), *_missing_type(found, kind)],
        chips=filter_chips(request, [("q", "Text", text), ("type", "Type", kind or "")]),
        clear=without_filters(request, ["q", "type"]),
        order=order,
        pages=request.pages(found.total),
        max_bytes=CONTENT_BYTES,
    )


def _missing_type(found: ResourcePage, kind: str | None) -> list[tuple[str, str]]:
    """Return the type to filter by as an option, if no resource has it."""
    return [] if kind is None or kind in dict(found.types) else [(kind, kind)]


# One resource


async def show_resource(request: WebRequest) -> WebResponse:
    """Show a resource by its URI or its id; the id is stable when the URI changes."""
    try:
        resource = await _find_resource(request)
    except ResourceNotFound:
        if not request.is_fragment:
            raise
        return render_page(request, "resources/resource_deleted.html")
    if request.is_fragment and request.query.get("seen") == str(resource.version):
        # Another resource has changed.
        return WebResponse(204)
    tab = request.chosen("tab", _TABS, "preview")
    _, content = await request.workspace.resources.read(request.caller, resource.uri)
    values: dict[str, Any] = {"resource": resource, "tab": tab}
    if tab == "source":
        if resource.is_text:
            values["excerpt"] = excerpt_of(content.decode(), SOURCE_LINES, SOURCE_LENGTH)
    elif tab == "agent":
        if not resource.is_template:
            values["result"] = _format_result(await _read_as_agent(request, resource.uri))
    elif tab == "history":
        values |= await _history(request, resource)
    else:
        values["preview"] = await preview_of(resource, content)
    if resource.is_template:
        values["variables"] = uri_templates.parse(resource.uri).variables
    return render_page(request, "resources/resource_view.html", max_bytes=CONTENT_BYTES, **values)


async def _find_resource(request: WebRequest) -> Resource:
    if "id" in request.query:
        return await request.workspace.resources.by_id(request.caller, request.query["id"])
    uri = request.query.get("uri", "")
    resource, _ = await request.workspace.resources.read(request.caller, uri)
    return resource


async def _history(request: WebRequest, resource: Resource) -> dict[str, Any]:
    """Return the versions of a resource and the diff of the selected one."""
    page = await version_page(request, "resource", resource.id, _VERSIONS_PER_PAGE)
    if page is None:
        raise ResourceNotFound(resource.id, request.project.name)
    requested = request.int_parameter("change")
    by_seq = {version.change.seq: version for version in page.versions}
    selected = by_seq.get(requested) or next(iter(page.versions), None)
    return {
        "page": page,
        "selected": selected,
        "rows": None if selected is None else await _diff_content(request, selected.change),
        "max_diff_bytes": _MAX_DIFF_BYTES,
    }


async def _diff_content(request: WebRequest, change: Change) -> list[DiffRow] | None:
    """Return the diff of the content, or None if it was purged, is not text or is too long."""
    states = [state for state in (change.before, change.after) if isinstance(state, Resource)]
    if change.purged is not None or any(
        not state.is_text or state.size > _MAX_DIFF_BYTES for state in states
    ):
        return None
    found = await request.workspace.history.compare(request.caller, change.seq)
    return diff_rows((found.old or b"").decode(), (found.new or b"").decode())


# What agents receive


class _SessionScope(ServerScope, frozen=True):
    """A server scope with the caller of a web session, to read as an agent does."""

    session_caller: Caller | None = None
    session_key: str = ""

    def caller(self, ctx: Context) -> Caller:
        assert self.session_caller is not None
        return self.session_caller

    def client_key(self, ctx: Context) -> Hashable:
        return self.session_key


async def _read_as_agent(request: WebRequest, uri: str) -> dict[str, Any]:
    """Return the result of `resources/read`. Raises `DittybagError`."""
    context = request.context
    scope = _SessionScope(
        context.workspace,
        context.templates,
        context.libraries,
        request.project.id,
        session_caller=request.caller,
        session_key=request.client_key,
    )
    source = StoredResources(scope, lambda uri, project: UnknownResource(uri), own_templates=True)
    try:
        # It uses the context only to find the caller and its key, which the scope provides.
        result = encode(await source.read(uri, cast(Context, None)))
    except ProtocolError as error:
        if isinstance(error.__cause__, DittybagError):
            raise error.__cause__ from None
        raise ResourceNotFound(uri, request.project.name) from error
    decoded: dict[str, Any] = msgspec.json.decode(result)
    return decoded


def _format_result(result: dict[str, Any]) -> str:
    """Format a result as JSON, with long values cut."""
    contents = [{field: _clip_value(value) for field, value in item.items()} for item in result["contents"]]
    return json.dumps({**result, "contents": contents}, indent=2, ensure_ascii=False)


def _clip_value(value: Any) -> Any:
    if not isinstance(value, str) or len(value) <= _MAX_AGENT_LENGTH:
        return value
    return f"{value[:_MAX_AGENT_LENGTH]}… and {len(value) - _MAX_AGENT_LENGTH} more characters"


async def show_rendered_template(request: WebRequest) -> WebResponse:
    """Return a resource template rendered with its variables, as a fragment."""
    resource = await _find_resource(request)
    if not resource.is_template:
        raise ResourceNotFound(resource.uri, request.project.name)
    template = uri_templates.parse(resource.uri)
    values = {name: request.query.get(_VARIABLE_PREFIX + name, "") for name in template.variables}
    missing = [name for name, value in values.items() if not value]
    uri = resource.uri
    for name, value in values.items():
        uri = uri.replace(f"{{{name}}}", quote(value, safe=""))
    shown: dict[str, Any] = {"missing": missing, "uri": uri, "problem": "", "preview": None}
    try:
        if not missing:
            result = await _read_as_agent(request, uri)
            shown["result"] = _format_result(result)
            [item] = result["contents"]
            if "text" in item:
                shown["preview"] = await text_preview(item.get("mimeType", ""), resource.name, item["text"])
    except DittybagError as error:
        shown["problem"] = str(error)
    return render_page(request, "resources/rendered_template.html", **shown)


# Bytes


async def raw(request: WebRequest) -> WebResponse:
    """Return an image inline; anything else only as a download."""
    resource, content = await request.workspace.resources.read(request.caller, request.query.get("uri", ""))
    kind = image_type(content)
    if kind is None or resource.is_text:
        return _attachment(resource, content)
    disposition = (b"content-disposition", b"inline")
    return WebResponse(200, content, kind.encode(), (disposition, _SANDBOX, _PRIVATE))


async def download(request: WebRequest) -> WebResponse:
    resource, content = await request.workspace.resources.read(request.caller, request.query.get("uri", ""))
    return _attachment(resource, content)


def _attachment(resource: Resource, content: bytes) -> WebResponse:
    # Names contain only letters, digits, dots, dashes and underscores, so no escaping is needed.
    disposition = f'attachment; filename="{_file_name(resource)}"'.encode("ascii")
    headers = ((b"content-disposition", disposition), _SANDBOX, _PRIVATE)
    return WebResponse(200, content, b"application/octet-stream", headers)


def _file_name(resource: Resource) -> str:
    """Return the file name: the name of the resource, with an extension if it has none."""
    name = resource.name.lstrip(".") or "document"
    return name if "." in name else name + extension_of(resource.mime_type)
