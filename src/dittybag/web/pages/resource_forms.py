"""The forms and actions of resources: create, edit, upload, replace and delete."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from hashlib import sha256
from typing import Any, Final

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.errors import (
    DittybagError,
    NameTaken,
    Outdated,
    Problem,
    ResourceNotFound,
    SeveralConflicts,
)
from dittybag.domain.mime_types import guess_mime_type
from dittybag.domain.names import NAME_LENGTH
from dittybag.domain.projects import Project
from dittybag.domain.resources import CONTENT_BYTES, Resource
from dittybag.services.resource_service import ResourceChange
from dittybag.web.browser_requests import (
    WebRequest,
    WebResponse,
    json_response,
    redirect,
    status_of,
)
from dittybag.web.pages.entity_forms import (
    FORM_ERRORS,
    EntityForm,
    form_fields,
    problems_of,
)
from dittybag.web.pages.entity_history import seq_to_undo
from dittybag.web.template_rendering import render_page

#: Longer texts cannot be edited in the form, because browsers become slow.
_MAX_EDITED_BYTES: Final = 1024 * 1024
_DEFAULT_URI: Final = "dittybag://resources/"
_INVALID_NAME_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9._-]+")


def _stored_form(resource: Resource, content: bytes) -> EntityForm:
    """Return the form of a resource, without a content that is not text or too long to edit."""
    form = EntityForm.stored("resource", resource)
    if not resource.is_text or resource.size > _MAX_EDITED_BYTES:
        return form
    return replace(form, values={**form.values, "content": content.decode()})


def _typed_form(request: WebRequest) -> EntityForm:
    form = EntityForm.typed("resource", request)
    values = {name: value.strip() for name, value in form.values.items()}
    if "content" in request.form:
        values["content"] = request.form["content"]
    return replace(form, values=values)


def _render_form(
    request: WebRequest, form: EntityForm, *, status: int = 200, resource: Resource | None = None
) -> WebResponse:
    return render_page(request, "resources/resource_form.html", status=status, form=form, resource=resource)


async def _find_by_id(request: WebRequest) -> Resource:
    return await request.workspace.resources.by_id(request.caller, request.query.get("id", ""))


# Creating and editing


async def show_new_form(request: WebRequest) -> WebResponse:
    return _render_form(request, EntityForm(kind="resource", values={"content": ""}))


async def create_resource(request: WebRequest) -> WebResponse:
    form = _typed_form(request)
    # As bytes, because a string of a binary type would be decoded as base64.
    content = form.value("content").encode()
    fields = _fields(form)
    fields["mime_type"] = fields["mime_type"] or guess_mime_type(fields["name"], content)
    try:
        resource, _ = await request.workspace.resources.create(request.caller, content=content, **fields)
    except FORM_ERRORS as error:
        # The problem with a URI derived from the name is the name.
        found = problems_of(error)
        fixable = [item for item in found if form.value("uri") or item.field != "uri"]
        return _render_form(request, replace(form, problems=fixable or found), status=status_of(error))
    return redirect(request.link("/resources/view", uri=resource.uri), f"Created {resource.name}")


async def show_edit_form(request: WebRequest) -> WebResponse:
    resource = await _find_by_id(request)
    [content] = await request.workspace.resources.contents(request.caller, [resource])
    return _render_form(request, _stored_form(resource, content), resource=resource)


async def save_resource(request: WebRequest) -> WebResponse:
    """Save the form, unless someone else changed the resource in the meantime."""
    form, resources = _typed_form(request), request.workspace.resources
    try:
        resource = await _find_by_id(request)
    except ResourceNotFound:
        message = "This resource was deleted while you were editing it. If you save now, it is created again."
        return _render_form(request, replace(form, problems=[Problem("", message)]), status=409)
    if form.version != resource.version:
        return await _render_conflict(request, form, resource)
    [content] = await resources.contents(request.caller, [resource])
    change = ResourceChange(**_fields(form), content=_new_content(form, content))
    try:
        changed, _ = await resources.update(request.caller, resource.name, change, version=form.version)
    except (Outdated, ResourceNotFound):
        return await _render_conflict(request, form, await resources.by_id(request.caller, resource.id))
    except FORM_ERRORS as error:
        return _render_form(request, form.with_error(error), resource=resource, status=status_of(error))
    # An undo must not take the address of the page away.
    is_undoable = changed.version != resource.version and changed.uri == resource.uri
    undo = await seq_to_undo(request, "resource", changed.id, changed.version) if is_undoable else 0
    return redirect(request.link("/resources/view", uri=changed.uri), "Saved", undo=undo)


def _fields(form: EntityForm) -> dict[str, Any]:
    return {**{name: form.value(name) for name in form_fields("resource")}, "uri": _uri(form)}


def _new_content(form: EntityForm, content: bytes) -> bytes | UnsetType:
    """Return the typed content with the line breaks of the resource; browsers send only one kind."""
    if "content" not in form.values:
        return UNSET
    old, typed = content.decode("utf-8", "replace"), form.value("content")
    if typed == _normalise_newlines(old):
        return UNSET
    uses_crlf = "\r\n" in old and old.count("\n") == old.count("\r\n")
    return (typed.replace("\n", "\r\n") if uses_crlf else typed).encode()


def _normalise_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


async def _render_conflict(request: WebRequest, form: EntityForm, theirs: Resource) -> WebResponse:
    """Show how both versions differ, and the form to overwrite the saved version."""
    [content] = await request.workspace.resources.contents(request.caller, [theirs])
    new = _new_content(form, content)
    digest = theirs.sha256 if new is UNSET else sha256(new).hexdigest()
    mine = replace(theirs, **ENTITY_TYPES["resource"].normalise(_fields(form)), sha256=digest)
    old = _normalise_newlines(content.decode("utf-8", "replace")).encode()
    form = await form.with_conflict(request, theirs, mine, (old, form.value("content").encode()))
    return _render_form(request, form, resource=theirs, status=409)


# Files


async def upload_file(request: WebRequest) -> WebResponse:
    """Create a resource from an uploaded file, or replace its content; responds with JSON."""
    typed = _INVALID_NAME_CHARACTERS.sub("-", request.query.get("name", ""))
    name = typed.strip("-")[:NAME_LENGTH] or "document"
    content = await request.body(CONTENT_BYTES)
    mime_type, resources = guess_mime_type(name, content), request.workspace.resources
    if request.query.get("replace") == "1":
        change = ResourceChange(content=content, mime_type=mime_type)
        return await _upload_response(request, resources.update(request.caller, name, change))
    creating = resources.create(
        request.caller, name=name, uri=_DEFAULT_URI + name, content=content, mime_type=mime_type
    )
    return await _upload_response(request, creating)


async def replace_content(request: WebRequest) -> WebResponse:
    """Replace the content of a resource with an uploaded file; responds with JSON."""
    change = ResourceChange(content=await request.body(CONTENT_BYTES))

    async def update() -> tuple[Resource, Project]:
        resource = await _find_by_id(request)
        version = request.int_parameter("version")
        return await request.workspace.resources.update(
            request.caller, resource.name, change, version=version
        )

    return await _upload_response(request, update())


async def _upload_response(request: WebRequest, saving: Awaitable[tuple[Resource, Project]]) -> WebResponse:
    try:
        resource, _ = await saving
    except DittybagError as error:
        taken = isinstance(error, NameTaken | SeveralConflicts)
        return json_response({"problem": str(error), "taken": taken}, status_of(error))
    return json_response({"name": resource.name, "link": request.link("/resources/view", uri=resource.uri)})


# Deleting


async def delete_resource(request: WebRequest) -> WebResponse:
    resources = request.workspace.resources
    found = await resources.by_id(request.caller, request.form.get("id", ""))
    deleted, _ = await resources.delete(request.caller, found.name)
    undo = await seq_to_undo(request, "resource", deleted.id, None)
    return redirect(request.link("/resources"), f"Deleted {deleted.name}", undo=undo)


def _uri(form: EntityForm) -> str:
    return form.value("uri") or _DEFAULT_URI + form.value("name")
