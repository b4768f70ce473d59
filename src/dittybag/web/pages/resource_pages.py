"""The pages of resources: the list, and one resource with its preview, its source and its history."""

from __future__ import annotations

import json
from typing import Any, Final, cast, get_args
from urllib.parse import quote

import msgspec
from msgspec import Struct

from dittybag.contracts.stored_resources import StoredResources
from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.changes import Change
from dittybag.domain.errors import DittybagError, ResourceNotFound
from dittybag.domain.ports import ResourceOrder
from dittybag.domain.resources import CONTENT_BYTES, Resource
from dittybag.protocol import Context, ProtocolError, UnknownResource, uri_templates
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.transports.http.asgi_messages import Header
from dittybag.services.caller import Caller
from dittybag.web.browser_requests import WebResponse, WebRequest, Route
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
#: So much of a text or of base64 is shown of what an agent gets.
_AGENT_LENGTH: Final = 5000
#: Versions of one resource on a page.
_VERSIONS: Final = 50
#: Longer texts are not compared.
_DIFF_BYTES: Final = 1024 * 1024
_VARIABLE: Final = "v."

#: Whoever opens it alone gets something that can do nothing.
_POWERLESS: Final[Header] = (b"content-security-policy", b"sandbox; default-src 'none'")
_PRIVATE: Final[Header] = (b"cache-control", b"private, no-store")


async def listed(request: WebRequest) -> WebResponse:
    """All resources of the project, or those that were asked for."""
    text = request.query.get("q", "").strip()[:200]
    kind = request.query.get("type") or None
    wanted = request.query.get("sort", "")
    order = cast(ResourceOrder, wanted if wanted in get_args(ResourceOrder) else "updated")
    current = request.int_parameter("page", 1, 1, 10**6)
    found = await request.workspace.resources.page(
        request.caller,
        text=text.replace("\0", ""),
        mime_type=kind,
        order=order,
        limit=_PER_PAGE,
        offset=(current - 1) * _PER_PAGE,
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
        most_bytes=CONTENT_BYTES,
    )


async def _deleted(request: WebRequest) -> Resource | None:
    """What was deleted a moment ago, to be brought back, if it is still gone."""
    if not request.query.get("deleted") or request.is_fragment:
        return None
    change = await resource_forms.last_change(request, request.query["deleted"])
    if change is None or change.after is not None:
        return None
    return change.before if isinstance(change.before, Resource) else None


# One resource


async def shown(request: WebRequest) -> WebResponse:
    """A resource, by its URI or, whatever that is by now, by its id."""
    try:
        resource = await _wanted(request)
    except ResourceNotFound:
        if not request.is_fragment:
            raise
        return render_page(request, "resources/resource_deleted.html")
    if request.is_fragment and request.query.get("seen") == str(resource.version):
        # Something else has changed.
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
            values["result"] = _written(await _read(request, resource.uri))
    elif tab == "history":
        values |= await _history(request, resource)
    else:
        values["preview"] = await preview_of(resource, content)
    if resource.is_template:
        values["variables"] = uri_templates.parse(resource.uri).variables
    return render_page(request, "resources/resource_view.html", most_bytes=CONTENT_BYTES, **values)


async def _wanted(request: WebRequest) -> Resource:
    if "id" in request.query:
        return await request.workspace.resources.by_id(request.caller, request.query["id"])
    uri = request.query.get("uri", "")
    resource, _ = await request.workspace.resources.read(request.caller, uri)
    return resource


class ResourceVersion(Struct, frozen=True):
    """A resource as it was after a change."""

    change: Change
    #: What is different from before, in words.
    parts: str
    is_current: bool


_PARTS: Final = {
    "name": "name",
    "title": "title",
    "uri": "URI",
    "mime_type": "type",
    "description": "description",
    "sha256": "content",
}


async def _history(request: WebRequest, resource: Resource) -> dict[str, Any]:
    """The versions of a resource, and what one of them changed."""
    before = request.int_parameter("before", 0, 0, 10**15) or None
    changes = await request.workspace.history.page(
        request.caller, kind="resource", entity=resource.id, before=before, limit=_VERSIONS + 1
    )
    current = _facts(resource)
    versions = [
        ResourceVersion(change, _changed_parts(change), _facts(change.after) == current)
        for change in changes[:_VERSIONS]
    ]
    wanted = request.int_parameter("change", 0, 0, 10**15)
    chosen = next((item for item in versions if item.change.seq == wanted), None)
    if chosen is None and versions:
        chosen = versions[0]
    return {
        "versions": versions,
        "chosen": chosen,
        "rows": None if chosen is None else await _difference(request, chosen.change),
        "older": changes[_VERSIONS - 1].seq if len(changes) > _VERSIONS else None,
    }


def _facts(entity: Any) -> Any:
    """What makes a version what it is."""
    return None if entity is None else [getattr(entity, part) for part in _PARTS]


def _changed_parts(change: Change) -> str:
    if change.before is None or change.after is None:
        return ""
    return ", ".join(
        word for part, word in _PARTS.items() if getattr(change.before, part) != getattr(change.after, part)
    )


async def _difference(request: WebRequest, change: Change) -> list[DiffRow] | None:
    """What a change did to the text; nothing if one of the states is no text that could be compared."""
    states = [state for state in (change.before, change.after) if isinstance(state, Resource)]
    if any(not state.is_text or state.size > _DIFF_BYTES for state in states):
        return None
    contents = await request.workspace.resources.contents(request.caller, states)
    texts = iter([content.decode() for content in contents])
    old = next(texts) if change.before is not None else ""
    new = next(texts) if change.after is not None else ""
    return side_by_side(old, new)


# What agents get


class _VisitorScope(ServerScope, frozen=True):
    """A place at which a visitor looks with the eyes of an agent."""

    session: Caller | None = None

    def caller(self, ctx: Context) -> Caller:
        assert self.session is not None
        return self.session


async def _read(request: WebRequest, uri: str) -> dict[str, Any]:
    """The result of `resources/read`, as the contract has it. Raises `DittybagError`."""
    context = request.context
    scope = _VisitorScope(
        context.workspace, context.templates, context.libraries, request.project.id, session=request.caller
    )
    source = StoredResources(scope, lambda uri, project: UnknownResource(uri), own_templates=True)
    try:
        # It asks its place who the caller is, and nothing else.
        result = encode(await source.read(uri, cast(Context, None)))
    except ProtocolError as error:
        if isinstance(error.__cause__, DittybagError):
            raise error.__cause__ from None
        raise ResourceNotFound(uri, request.project.name) from error
    decoded: dict[str, Any] = msgspec.json.decode(result)
    return decoded


def _written(result: dict[str, Any]) -> str:
    """A result as JSON for people, with long values cut."""
    contents = [
        {part: _cut(value) if part in ("text", "blob") else value for part, value in item.items()}
        for item in result["contents"]
    ]
    return json.dumps({**result, "contents": contents}, indent=2, ensure_ascii=False)


def _cut(value: str) -> str:
    left = len(value) - _AGENT_LENGTH
    return value if left <= 0 else f"{value[:_AGENT_LENGTH]}… and {left} more characters"


async def filled(request: WebRequest) -> WebResponse:
    """What a resource template says for some values of its variables: a part of its page."""
    resource = await _wanted(request)
    if not resource.is_template:
        raise ResourceNotFound(resource.uri, request.project.name)
    template = uri_templates.parse(resource.uri)
    values = {name: request.query.get(_VARIABLE + name, "") for name in template.variables}
    missing = [name for name, value in values.items() if not value]
    if missing:
        return render_page(request, "resources/rendered_template.html", missing=missing, uri="", problem="")
    uri = resource.uri
    for name, value in values.items():
        uri = uri.replace(f"{{{name}}}", quote(value, safe=""))
    about: dict[str, Any] = {"missing": [], "uri": uri, "problem": "", "preview": None, "result": ""}
    try:
        result = await _read(request, uri)
        about["result"] = _written(result)
        [item] = result["contents"]
        if "text" in item:
            about["preview"] = await text_preview(item.get("mimeType", ""), resource.name, item["text"])
    except DittybagError as error:
        about["problem"] = str(error)
    return render_page(request, "resources/rendered_template.html", **about)


# Bytes


async def raw(request: WebRequest) -> WebResponse:
    """An image for a page; anything else is only handed over to be saved."""
    resource, content = await request.workspace.resources.read(request.caller, request.query.get("uri", ""))
    kind = image_type(content)
    if kind is None or resource.is_text:
        return _attachment(resource, content)
    disposition = (b"content-disposition", b"inline")
    return WebResponse(200, content, kind.encode(), (disposition, _POWERLESS, _PRIVATE))


async def download(request: WebRequest) -> WebResponse:
    """The document as a file."""
    resource, content = await request.workspace.resources.read(request.caller, request.query.get("uri", ""))
    return _attachment(resource, content)


def _attachment(resource: Resource, content: bytes) -> WebResponse:
    # Names have only letters, digits, dots, dashes and underscores: nothing is to be escaped.
    disposition = f'attachment; filename="{_file_name(resource)}"'.encode("ascii")
    headers = ((b"content-disposition", disposition), _POWERLESS, _PRIVATE)
    return WebResponse(200, content, b"application/octet-stream", headers)


_FILE_ENDINGS: Final = {
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
    """A name for the file: that of the resource, with an ending if it has none."""
    name = resource.name.lstrip(".") or "document"
    return name if "." in name else name + _FILE_ENDINGS.get(resource.mime_type, "")


routes: Final = (
    Route("GET", "/resources", listed),
    Route("GET", "/resources/view", shown),
    Route("GET", "/resources/filled", filled),
    Route("GET", "/resources/raw", raw),
    Route("GET", "/resources/download", download),
    *resource_forms.routes,
)
