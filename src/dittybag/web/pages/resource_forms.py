"""What people do with resources: write, change, upload, replace, delete, and take it back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from dittybag.domain.changes import Change
from dittybag.domain.errors import (
    Conflict,
    DittybagError,
    Invalid,
    NameTaken,
    Outdated,
    Problem,
    ResourceNotFound,
    SeveralConflicts,
    UriTaken,
)
from dittybag.domain.mime_types import guess_mime_type
from dittybag.domain.names import NAME_LENGTH
from dittybag.domain.resources import CONTENT_BYTES, Resource
from dittybag.services.resource_service import ResourceChange
from dittybag.web.browser_requests import WebResponse, WebRequest, Route, json_response, redirect
from dittybag.web.side_by_side import side_by_side
from dittybag.web.template_rendering import render_page

#: A longer text is edited elsewhere, and uploaded: browsers become slow.
_EDITED_BYTES: Final = 1024 * 1024
_FIELDS: Final = ("name", "title", "uri", "mime_type", "description")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")


class _Form(Struct, frozen=True, kw_only=True):
    """What stands in the form of a resource."""

    name: str = ""
    title: str = ""
    uri: str = ""
    mime_type: str = ""
    description: str = ""
    #: Nothing for a document that is not text.
    content: str | None = ""


def _form_of(resource: Resource, content: bytes) -> _Form:
    has_text = resource.is_text and resource.size <= _EDITED_BYTES
    return _Form(
        name=resource.name,
        title=resource.title or "",
        uri=resource.uri,
        mime_type=resource.mime_type,
        description=resource.description or "",
        content=content.decode() if has_text else None,
    )


def _typed(request: WebRequest) -> _Form:
    """What somebody has typed."""
    texts = {field: request.form.get(field, "").strip() for field in _FIELDS}
    return _Form(**texts, content=request.form.get("content"))


# Writing


async def new(request: WebRequest) -> WebResponse:
    """An empty form."""
    return _form_page(request, _Form())


async def create(request: WebRequest) -> WebResponse:
    """Store what was written."""
    form = _typed(request)
    # As bytes: a text of a type that is not for text would be taken for base64.
    content = (form.content or "").encode()
    try:
        resource, _ = await request.workspace.resources.create(
            request.caller,
            name=form.name,
            uri=form.uri or _own_uri(form.name),
            content=content,
            mime_type=form.mime_type or guess_mime_type(form.name, content),
            title=form.title,
            description=form.description,
        )
    except (Invalid, Conflict) as error:
        # What is wrong with a URI that was made from the name is the name.
        problems = [item for item in _problems(error) if form.uri or item.field != "uri"]
        return _form_page(request, form, problems=problems or _problems(error), status=_status(error))
    return redirect(request.link("/resources/view", uri=resource.uri), f"Added {resource.name}")


async def edit(request: WebRequest) -> WebResponse:
    """A form with what is there."""
    resource = await request.workspace.resources.by_id(request.caller, request.query.get("id", ""))
    [content] = await request.workspace.resources.contents(request.caller, [resource])
    return _form_page(request, _form_of(resource, content), resource=resource)


async def save(request: WebRequest) -> WebResponse:
    """Store what was changed, unless somebody else was faster."""
    form, resources = _typed(request), request.workspace.resources
    version = _number(request.form.get("version", ""))
    try:
        resource = await resources.by_id(request.caller, request.query.get("id", ""))
    except ResourceNotFound:
        words = "It was deleted meanwhile. What you typed is here; saving adds it anew."
        return _form_page(request, form, problems=[Problem("", words)], status=409)
    if version != resource.version:
        return await _conflict(request, form, resource)
    [content] = await resources.contents(request.caller, [resource])
    try:
        changed, _ = await resources.update(
            request.caller, resource.name, _change(form, content), version=version
        )
    except (Outdated, ResourceNotFound):
        return await _conflict(request, form, await resources.by_id(request.caller, resource.id))
    except (Invalid, Conflict) as error:
        return _form_page(request, form, resource=resource, problems=_problems(error), status=_status(error))
    return redirect(request.link("/resources/view", uri=changed.uri), "Saved")


def _change(form: _Form, content: bytes) -> ResourceChange:
    """What the form says, as a change of a resource with this content."""
    change: dict[str, Any] = {field: getattr(form, field) for field in _FIELDS if field != "uri"}
    return ResourceChange(**change, uri=form.uri or _own_uri(form.name), content=_new_content(form, content))


def _new_content(form: _Form, content: bytes) -> bytes | UnsetType:
    """What was typed, with the line ends that the document has: a browser knows only one kind of them."""
    if form.content is None:
        return UNSET
    old = content.decode("utf-8", "replace")
    if form.content == _as_browsers_have_it(old):
        return UNSET
    ends_like_mail = "\r\n" in old and old.count("\n") == old.count("\r\n")
    text = form.content.replace("\n", "\r\n") if ends_like_mail else form.content
    return text.encode()


def _as_browsers_have_it(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


async def _conflict(request: WebRequest, form: _Form, theirs: Resource) -> WebResponse:
    """Both versions, and the form with what was typed, which would be saved over theirs."""
    [content] = await request.workspace.resources.contents(request.caller, [theirs])
    their_form = _form_of(theirs, content)
    their_text = None if their_form.content is None else _as_browsers_have_it(their_form.content)
    fields = [
        (field, getattr(their_form, field), getattr(form, field))
        for field in _FIELDS
        if getattr(their_form, field) != getattr(form, field)
    ]
    is_text = their_text is not None and form.content is not None
    rows = side_by_side(their_text or "", form.content or "") if is_text else []
    return _form_page(
        request,
        form,
        resource=theirs,
        status=409,
        theirs=theirs,
        fields=fields,
        rows=rows,
        latest=await last_change(request, theirs.id),
    )


async def last_change(request: WebRequest, resource: str) -> Change | None:
    """What happened last to a resource, which may be gone by now."""
    changes = await request.workspace.history.page(request.caller, kind="resource", entity=resource, limit=1)
    return changes[0] if changes else None


async def edited(request: WebRequest) -> WebResponse:
    """Says above an open form that somebody else has changed the resource; nothing as long as nobody has."""
    version = request.int_parameter("version", 0, 0, 10**15)
    try:
        resource = await request.workspace.resources.by_id(request.caller, request.query.get("id", ""))
    except ResourceNotFound:
        return render_page(request, "resources/resource_changed.html", latest=None)
    if resource.version == version:
        return WebResponse(204)
    return render_page(request, "resources/resource_changed.html", latest=await last_change(request, resource.id))


def _form_page(
    request: WebRequest, form: _Form, *, status: int = 200, problems: Sequence[Problem] = (), **values: Any
) -> WebResponse:
    given = {"resource": None, "theirs": None, "fields": (), "rows": (), "latest": None, **values}
    wrong = {problem.field: problem.message for problem in problems if problem.field}
    return render_page(
        request,
        "resources/resource_form.html",
        status=status,
        form=form,
        problems=problems,
        wrong=wrong,
        **given,
    )


def _problems(error: DittybagError) -> list[Problem]:
    """What is wrong, at the field where it can be mended."""
    if isinstance(error, Invalid):
        return list(error.problems)
    if isinstance(error, SeveralConflicts):
        return [problem for conflict in error.conflicts for problem in _problems(conflict)]
    field = "name" if isinstance(error, NameTaken) else "uri" if isinstance(error, UriTaken) else ""
    return [Problem(field, str(error))]


def _status(error: DittybagError) -> int:
    return 422 if isinstance(error, Invalid) else 409


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 18 else 0


# Files


async def upload(request: WebRequest) -> WebResponse:
    """Store a file that was sent as it is; answers a script."""
    name = _NOT_IN_NAMES.sub("-", request.query.get("name", "")).strip("-")[:NAME_LENGTH] or "document"
    content = await request.body(CONTENT_BYTES)
    kind = guess_mime_type(name, content)
    resources = request.workspace.resources
    try:
        if request.query.get("replace") == "1":
            change = ResourceChange(content=content, mime_type=kind)
            resource, _ = await resources.update(request.caller, name, change)
        else:
            resource, _ = await resources.create(
                request.caller, name=name, uri=_own_uri(name), content=content, mime_type=kind
            )
    except DittybagError as error:
        taken = isinstance(error, NameTaken | SeveralConflicts)
        return json_response({"problem": str(error), "taken": taken}, _status(error))
    return json_response({"name": resource.name, "link": request.link("/resources/view", uri=resource.uri)})


async def replace(request: WebRequest) -> WebResponse:
    """Store a file in place of the content of a resource; answers a script."""
    content = await request.body(CONTENT_BYTES)
    version = request.int_parameter("version", 0, 0, 10**15)
    resources = request.workspace.resources
    try:
        resource = await resources.by_id(request.caller, request.query.get("id", ""))
        change = ResourceChange(content=content)
        changed, _ = await resources.update(request.caller, resource.name, change, version=version)
    except DittybagError as error:
        return json_response({"problem": str(error)}, _status(error))
    return json_response({"name": changed.name, "link": request.link("/resources/view", uri=changed.uri)})


# Taking away and bringing back


async def delete(request: WebRequest) -> WebResponse:
    """Delete a resource, and offer to bring it back."""
    resources = request.workspace.resources
    found = await resources.by_id(request.caller, request.form.get("id", ""))
    gone, _ = await resources.delete(request.caller, found.name)
    return redirect(request.link("/resources", deleted=gone.id))


async def undo(request: WebRequest) -> WebResponse:
    """Bring back a resource that was deleted, and what was deleted together with it."""
    last = await last_change(request, request.form.get("id", ""))
    state = None if last is None else last.before if last.after is None else last.after
    if last is None or not isinstance(state, Resource):
        raise ResourceNotFound(request.form.get("id", ""), request.project.name)
    if last.after is None:
        await request.workspace.history.undo(request.caller, last.seq)
    return redirect(request.link("/resources/view", uri=state.uri), f"{state.name} is back")


async def restore(request: WebRequest) -> WebResponse:
    """Make a resource again what it was after a change."""
    seq = _number(request.form.get("seq", ""))
    restored = await request.workspace.history.restore(request.caller, seq)
    if not isinstance(restored, Resource):
        return redirect(request.link("/resources"), "It is as it was then")
    link = request.link("/resources/view", uri=restored.uri, tab="history")
    return redirect(link, f"{restored.name} is as it was then")


def _own_uri(name: str) -> str:
    return f"dittybag://resources/{name}"


routes: Final = (
    Route("GET", "/resources/new", new),
    Route("POST", "/resources/new", create),
    Route("GET", "/resources/edit", edit),
    Route("POST", "/resources/edit", save),
    Route("GET", "/resources/edited", edited),
    Route("POST", "/resources/upload", upload, takes_form=False),
    Route("POST", "/resources/replace", replace, takes_form=False),
    Route("POST", "/resources/delete", delete),
    Route("POST", "/resources/undo", undo),
    Route("POST", "/resources/restore", restore),
)
