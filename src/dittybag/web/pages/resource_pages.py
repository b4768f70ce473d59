"""The resource list and the page of a resource: preview, source, history and download."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any, Final, cast, get_args
from urllib.parse import quote

import msgspec
from msgspec import Struct

from dittybag.contracts.stored_resources import StoredResources
from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.changes import Change, Purged
from dittybag.domain.errors import DittybagError, ResourceNotFound
from dittybag.domain.queries import ChangeQuery, ResourceOrder, ResourceQuery
from dittybag.domain.resources import CONTENT_BYTES, Resource
from dittybag.http.asgi_messages import Header
from dittybag.protocol import uri_templates
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.request_context import Context
from dittybag.protocol.wire_errors import ProtocolError, UnknownResource
from dittybag.services.caller import Caller
from dittybag.web.browser_requests import Route, WebRequest, WebResponse
from dittybag.web.pages import resource_forms
from dittybag.web.resource_previews import (
    SOURCE_LENGTH,
    SOURCE_LINES,
    excerpt_of,
    image_type,
    preview_of,
    text_preview,
)
from dittybag.web.side_by_side import DiffRow, side_by_side
from dittybag.web.template_rendering import render_page

_PER_PAGE: Final = 50
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
    requested = request.query.get("sort", "")
    order = cast(ResourceOrder, requested if requested in get_args(ResourceOrder) else "updated")
    current = request.int_parameter("page", 1, 1, 10**6)
    found = await request.workspace.resources.page(
        request.caller,
        ResourceQuery(
            project=request.caller.project,
            text=text.replace("\0", ""),
            mime_type=kind,
            order=order,
            limit=_PER_PAGE,
            offset=(current - 1) * _PER_PAGE,
        ),
    )
    return render_page(
        request,
        "resources/resource_list.html",
        found=found,
        text=text,
        kind=kind or "",
        order=order,
        current=current,
        last=max(1, -(-found.total // _PER_PAGE)),
        to=lambda number: request.with_query(page=number if number > 1 else None, deleted=None),
        deleted=await _deleted(request),
        max_bytes=CONTENT_BYTES,
    )


async def _deleted(request: WebRequest) -> Resource | None:
    """Return the resource that was just deleted, to offer undo; None if it exists again."""
    if not request.query.get("deleted") or request.is_fragment:
        return None
    change = await resource_forms.last_change(request, request.query["deleted"])
    if change is None or change.after is not None:
        return None
    return change.before if isinstance(change.before, Resource) else None


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
    tab = request.query.get("tab", "preview")
    tab = tab if tab in _TABS else "preview"
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


class ResourceVersion(Struct, frozen=True):
    """A version in the history of a resource."""

    change: Change
    #: The names of the changed fields.
    parts: str
    is_current: bool
    is_purged: bool


_FIELD_LABELS: Final = {
    "name": "name",
    "title": "title",
    "uri": "URI",
    "mime_type": "type",
    "description": "description",
    "sha256": "content",
}


async def _history(request: WebRequest, resource: Resource) -> dict[str, Any]:
    """Return the versions of a resource and the diff of the selected one."""
    before = request.int_parameter("before", 0, 0, 10**15) or None
    query = ChangeQuery(
        project=request.caller.project,
        kind="resource",
        entity=resource.id,
        before=before,
        limit=_VERSIONS_PER_PAGE + 1,
    )
    changes = await request.workspace.history.page(request.caller, query)
    current = _version_key(resource)
    versions = [
        ResourceVersion(
            change,
            _changed_fields(change),
            _version_key(change.after) == current,
            isinstance(change.after, Purged),
        )
        for change in changes[:_VERSIONS_PER_PAGE]
    ]
    requested = request.int_parameter("change", 0, 0, 10**15)
    selected = next((item for item in versions if item.change.seq == requested), None)
    if selected is None and versions:
        selected = versions[0]
    return {
        "versions": versions,
        "selected_version": selected,
        "rows": None if selected is None else await _diff_content(request, selected.change),
        "older": changes[_VERSIONS_PER_PAGE - 1].seq if len(changes) > _VERSIONS_PER_PAGE else None,
    }


def _version_key(entity: Any) -> Any:
    """Return the values that identify a version."""
    return [getattr(entity, field) for field in _FIELD_LABELS] if isinstance(entity, Resource) else None


def _changed_fields(change: Change) -> str:
    if not isinstance(change.before, Resource) or not isinstance(change.after, Resource):
        return ""
    return ", ".join(
        label
        for field, label in _FIELD_LABELS.items()
        if getattr(change.before, field) != getattr(change.after, field)
    )


async def _diff_content(request: WebRequest, change: Change) -> list[DiffRow] | None:
    """Return the diff of the content, or None if it was purged, is not text or is too long."""
    if change.purged is not None:
        return None
    states = [state for state in (change.before, change.after) if isinstance(state, Resource)]
    if any(not state.is_text or state.size > _MAX_DIFF_BYTES for state in states):
        return None
    contents = await request.workspace.resources.contents(request.caller, states)
    texts = iter([content.decode() for content in contents])
    old = next(texts) if change.before is not None else ""
    new = next(texts) if change.after is not None else ""
    return side_by_side(old, new)


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
    contents = [
        {field: _clip_value(value) if field in ("text", "blob") else value for field, value in item.items()}
        for item in result["contents"]
    ]
    return json.dumps({**result, "contents": contents}, indent=2, ensure_ascii=False)


def _clip_value(value: str) -> str:
    left = len(value) - _MAX_AGENT_LENGTH
    return value if left <= 0 else f"{value[:_MAX_AGENT_LENGTH]}… and {left} more characters"


async def show_rendered_template(request: WebRequest) -> WebResponse:
    """Return a resource template rendered with its variables, as a fragment."""
    resource = await _find_resource(request)
    if not resource.is_template:
        raise ResourceNotFound(resource.uri, request.project.name)
    template = uri_templates.parse(resource.uri)
    values = {name: request.query.get(_VARIABLE_PREFIX + name, "") for name in template.variables}
    missing = [name for name, value in values.items() if not value]
    if missing:
        return render_page(request, "resources/rendered_template.html", missing=missing, uri="", problem="")
    uri = resource.uri
    for name, value in values.items():
        uri = uri.replace(f"{{{name}}}", quote(value, safe=""))
    page_values: dict[str, Any] = {"missing": [], "uri": uri, "problem": "", "preview": None, "result": ""}
    try:
        result = await _read_as_agent(request, uri)
        page_values["result"] = _format_result(result)
        [item] = result["contents"]
        if "text" in item:
            page_values["preview"] = await text_preview(item.get("mimeType", ""), resource.name, item["text"])
    except DittybagError as error:
        page_values["problem"] = str(error)
    return render_page(request, "resources/rendered_template.html", **page_values)


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
    """Return the resource as a download."""
    resource, content = await request.workspace.resources.read(request.caller, request.query.get("uri", ""))
    return _attachment(resource, content)


def _attachment(resource: Resource, content: bytes) -> WebResponse:
    # Names contain only letters, digits, dots, dashes and underscores, so no escaping is needed.
    disposition = f'attachment; filename="{_file_name(resource)}"'.encode("ascii")
    headers = ((b"content-disposition", disposition), _SANDBOX, _PRIVATE)
    return WebResponse(200, content, b"application/octet-stream", headers)


_FILE_EXTENSIONS: Final = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/sql": ".sql",
    "application/yaml": ".yaml",
    "image/avif": ".avif",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "text/csv": ".csv",
    "text/markdown": ".md",
    "text/plain": ".txt",
}


def _file_name(resource: Resource) -> str:
    """Return the file name: the name of the resource, with an extension if it has none."""
    name = resource.name.lstrip(".") or "document"
    return name if "." in name else name + _FILE_EXTENSIONS.get(resource.mime_type, "")


routes: Final = (
    Route("GET", "/resources", show_resources),
    Route("GET", "/resources/view", show_resource),
    Route("GET", "/resources/rendered", show_rendered_template),
    Route("GET", "/resources/raw", raw),
    Route("GET", "/resources/download", download),
    *resource_forms.routes,
)
