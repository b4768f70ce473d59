"""The forms and actions of resources: create, edit, upload, replace, delete and undo."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from dittybag.domain.changes import Change, require_content
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
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.resources import CONTENT_BYTES, Resource
from dittybag.services.history_service import UndoSelection
from dittybag.services.resource_service import ResourceChange
from dittybag.web.browser_requests import (
    LONG_FORM_BYTES,
    Route,
    WebRequest,
    WebResponse,
    json_response,
    redirect,
)
from dittybag.web.side_by_side import side_by_side
from dittybag.web.template_rendering import render_page

#: Longer texts cannot be edited in the form, because browsers become slow.
_MAX_EDITED_BYTES: Final = 1024 * 1024
_FIELDS: Final = ("name", "title", "uri", "mime_type", "description")
_INVALID_NAME_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9._-]+")


class _ResourceForm(Struct, frozen=True, kw_only=True):
    """The form fields of a resource."""

    name: str = ""
    title: str = ""
    uri: str = ""
    mime_type: str = ""
    description: str = ""
    #: None if the content is not text or too long to edit.
    content: str | None = ""


def _form_from_resource(resource: Resource, content: bytes) -> _ResourceForm:
    has_text = resource.is_text and resource.size <= _MAX_EDITED_BYTES
    return _ResourceForm(
        name=resource.name,
        title=resource.title or "",
        uri=resource.uri,
        mime_type=resource.mime_type,
        description=resource.description or "",
        content=content.decode() if has_text else None,
    )


def _read_form(request: WebRequest) -> _ResourceForm:
    """Return the submitted form."""
    texts = {field: request.form.get(field, "").strip() for field in _FIELDS}
    return _ResourceForm(**texts, content=request.form.get("content"))


# Creating and editing


async def show_new_form(request: WebRequest) -> WebResponse:
    """Show an empty form."""
    return _render_form(request, _ResourceForm())


async def create_resource(request: WebRequest) -> WebResponse:
    """Create a resource from the form."""
    form = _read_form(request)
    # As bytes, because a string of a binary type would be decoded as base64.
    content = (form.content or "").encode()
    try:
        resource, _ = await request.workspace.resources.create(
            request.caller,
            name=form.name,
            uri=form.uri or _default_uri(form.name),
            content=content,
            mime_type=form.mime_type or guess_mime_type(form.name, content),
            title=form.title,
            description=form.description,
        )
    except (Invalid, Conflict) as error:
        # The problem with a URI derived from the name is the name.
        problems = [item for item in _problems(error) if form.uri or item.field != "uri"]
        return _render_form(request, form, problems=problems or _problems(error), status=_status(error))
    return redirect(request.link("/resources/view", uri=resource.uri), f"Created {resource.name}")


async def show_edit_form(request: WebRequest) -> WebResponse:
    """Show the form of an existing resource."""
    resource = await request.workspace.resources.by_id(request.caller, request.query.get("id", ""))
    [content] = await request.workspace.resources.contents(request.caller, [resource])
    return _render_form(request, _form_from_resource(resource, content), resource=resource)


async def save_resource(request: WebRequest) -> WebResponse:
    """Save the form, unless someone else changed the resource in the meantime."""
    form, resources = _read_form(request), request.workspace.resources
    version = _parse_int(request.form.get("version", ""))
    try:
        resource = await resources.by_id(request.caller, request.query.get("id", ""))
    except ResourceNotFound:
        message = "This resource was deleted while you were editing it. If you save now, it is created again."
        return _render_form(request, form, problems=[Problem("", message)], status=409)
    if version != resource.version:
        return await _render_conflict(request, form, resource)
    [content] = await resources.contents(request.caller, [resource])
    try:
        changed, _ = await resources.update(
            request.caller, resource.name, _resource_change(form, content), version=version
        )
    except (Outdated, ResourceNotFound):
        return await _render_conflict(request, form, await resources.by_id(request.caller, resource.id))
    except (Invalid, Conflict) as error:
        return _render_form(
            request, form, resource=resource, problems=_problems(error), status=_status(error)
        )
    return redirect(request.link("/resources/view", uri=changed.uri), "Saved")


def _resource_change(form: _ResourceForm, content: bytes) -> ResourceChange:
    """Convert the form to a change of a resource with this content."""
    change: dict[str, Any] = {field: getattr(form, field) for field in _FIELDS if field != "uri"}
    return ResourceChange(
        **change, uri=form.uri or _default_uri(form.name), content=_new_content(form, content)
    )


def _new_content(form: _ResourceForm, content: bytes) -> bytes | UnsetType:
    """Return the typed content with the line breaks of the resource; browsers send only one kind."""
    if form.content is None:
        return UNSET
    old = content.decode("utf-8", "replace")
    if form.content == _normalise_newlines(old):
        return UNSET
    uses_crlf = "\r\n" in old and old.count("\n") == old.count("\r\n")
    text = form.content.replace("\n", "\r\n") if uses_crlf else form.content
    return text.encode()


def _normalise_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


async def _render_conflict(request: WebRequest, form: _ResourceForm, theirs: Resource) -> WebResponse:
    """Show both versions side by side, and the form to overwrite the saved version."""
    [content] = await request.workspace.resources.contents(request.caller, [theirs])
    their_form = _form_from_resource(theirs, content)
    their_text = None if their_form.content is None else _normalise_newlines(their_form.content)
    fields = [
        (field, getattr(their_form, field), getattr(form, field))
        for field in _FIELDS
        if getattr(their_form, field) != getattr(form, field)
    ]
    is_text = their_text is not None and form.content is not None
    rows = side_by_side(their_text or "", form.content or "") if is_text else []
    return _render_form(
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
    """Return the latest change of a resource, even if it was deleted."""
    query = ChangeQuery(project=request.caller.project, kind="resource", entity=resource, limit=1)
    changes = await request.workspace.history.page(request.caller, query)
    return changes[0] if changes else None


async def show_change_warning(request: WebRequest) -> WebResponse:
    """Return a warning for an open form if someone else changed the resource."""
    version = request.int_parameter("version", 0, 0, 10**15)
    try:
        resource = await request.workspace.resources.by_id(request.caller, request.query.get("id", ""))
    except ResourceNotFound:
        return render_page(request, "resources/resource_changed.html", latest=None)
    if resource.version == version:
        return WebResponse(204)
    return render_page(
        request, "resources/resource_changed.html", latest=await last_change(request, resource.id)
    )


def _render_form(
    request: WebRequest,
    form: _ResourceForm,
    *,
    status: int = 200,
    problems: Sequence[Problem] = (),
    **values: Any,
) -> WebResponse:
    defaults = {"resource": None, "theirs": None, "fields": (), "rows": (), "latest": None, **values}
    errors = {problem.field: problem.message for problem in problems if problem.field}
    return render_page(
        request,
        "resources/resource_form.html",
        status=status,
        form=form,
        problems=problems,
        errors=errors,
        **defaults,
    )


def _problems(error: DittybagError) -> list[Problem]:
    """Return the problems of an error by form field."""
    if isinstance(error, Invalid):
        return list(error.problems)
    if isinstance(error, SeveralConflicts):
        return [problem for conflict in error.conflicts for problem in _problems(conflict)]
    field = "name" if isinstance(error, NameTaken) else "uri" if isinstance(error, UriTaken) else ""
    return [Problem(field, str(error))]


def _status(error: DittybagError) -> int:
    return 422 if isinstance(error, Invalid) else 409


def _parse_int(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 18 else 0


# Files


async def upload_file(request: WebRequest) -> WebResponse:
    """Create a resource from an uploaded file, or replace its content; responds with JSON."""
    name = (
        _INVALID_NAME_CHARACTERS.sub("-", request.query.get("name", "")).strip("-")[:NAME_LENGTH]
        or "document"
    )
    content = await request.body(CONTENT_BYTES)
    mime_type = guess_mime_type(name, content)
    resources = request.workspace.resources
    try:
        if request.query.get("replace") == "1":
            change = ResourceChange(content=content, mime_type=mime_type)
            resource, _ = await resources.update(request.caller, name, change)
        else:
            resource, _ = await resources.create(
                request.caller, name=name, uri=_default_uri(name), content=content, mime_type=mime_type
            )
    except DittybagError as error:
        taken = isinstance(error, NameTaken | SeveralConflicts)
        return json_response({"problem": str(error), "taken": taken}, _status(error))
    return json_response({"name": resource.name, "link": request.link("/resources/view", uri=resource.uri)})


async def replace_content(request: WebRequest) -> WebResponse:
    """Replace the content of a resource with an uploaded file; responds with JSON."""
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


# Deleting and restoring


async def delete_resource(request: WebRequest) -> WebResponse:
    """Delete a resource and offer undo."""
    resources = request.workspace.resources
    found = await resources.by_id(request.caller, request.form.get("id", ""))
    deleted, _ = await resources.delete(request.caller, found.name)
    return redirect(request.link("/resources", deleted=deleted.id))


async def undo_deletion(request: WebRequest) -> WebResponse:
    """Undo the deletion of a resource and the rest of its batch."""
    change = await last_change(request, request.form.get("id", ""))
    require_content([] if change is None else [change])
    resource = None if change is None else change.before if change.after is None else change.after
    if change is None or not isinstance(resource, Resource):
        raise ResourceNotFound(request.form.get("id", ""), request.project.name)
    if change.after is None:
        selection = UndoSelection(seq=change.seq, project=request.caller.project)
        await request.workspace.history.undo(request.caller, selection)
    return redirect(request.link("/resources/view", uri=resource.uri), f"Restored {resource.name}")


async def restore_version(request: WebRequest) -> WebResponse:
    """Restore the version of a resource after a change."""
    seq = _parse_int(request.form.get("seq", ""))
    restored = await request.workspace.history.restore(request.caller, seq, project=request.caller.project)
    if not isinstance(restored, Resource):
        return redirect(request.link("/resources"), "Version restored")
    link = request.link("/resources/view", uri=restored.uri, tab="history")
    return redirect(link, f"Restored an older version of {restored.name}")


def _default_uri(name: str) -> str:
    return f"dittybag://resources/{name}"


routes: Final = (
    Route("GET", "/resources/new", show_new_form),
    Route("POST", "/resources/new", create_resource, form_bytes=LONG_FORM_BYTES),
    Route("GET", "/resources/edit", show_edit_form),
    Route("POST", "/resources/edit", save_resource, form_bytes=LONG_FORM_BYTES),
    Route("GET", "/resources/changed", show_change_warning),
    Route("POST", "/resources/upload", upload_file, takes_form=False),
    Route("POST", "/resources/replace", replace_content, takes_form=False),
    Route("POST", "/resources/delete", delete_resource),
    Route("POST", "/resources/undo", undo_deletion),
    Route("POST", "/resources/restore", restore_version),
)
