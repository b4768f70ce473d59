"""Stored resources as MCP resources; those with variables in their URIs are resource templates."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Literal

from dittybag.contracts import agent_context, ready_resource
from dittybag.contracts.error_formats import as_protocol_errors
from dittybag.contracts.paging import parse_position, take_page
from dittybag.contracts.stored_prompts import complete_by_name, filter_by_prefix
from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.errors import ResourceNotFound
from dittybag.domain.resources import Resource
from dittybag.domain.times import iso
from dittybag.protocol import uri_templates
from dittybag.protocol.eras.versions import V2025_06_18
from dittybag.protocol.features import PAGE_SIZE, CompletionRequest, Page
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import (
    Annotations,
    BlobContents,
    ReadResult,
    ResourceInfo,
    ResourceTemplateInfo,
    TextContents,
)
from dittybag.protocol.wire_errors import InvalidParams, ProtocolError
from dittybag.services.prompt_service import PromptPage

#: Returns the profile's error for a missing resource, given its URI and the project.
MissingResourceFormatter = Callable[[str, str], ProtocolError]

#: Maximum number of URIs that completion inspects.
_SAMPLE: Final = 1000

_TAGGED: Final = ResourceTemplateInfo(
    uri_template="dittybag://tags/{tag}",
    name="prompts-by-tag",
    title="Prompts by tag",
    description="Prompts in this project that have the tag, most recently updated first",
    mime_type="application/json",
)
_PROJECT: Final = ResourceTemplateInfo(
    uri_template="dittybag://projects/{project}",
    name="project-overview",
    title="Project overview",
    description="Number of prompts, resources and tasks in a project",
    mime_type="application/json",
)
_OWN: Final = (_TAGGED, _PROJECT)

#: Where the resource of ready tasks is listed.
ReadyListing = Literal["resource", "template"]


class StoredResources:
    """Serves the resources of a project. See `dittybag.protocol.ResourceSource`."""

    def __init__(
        self,
        scope: ServerScope,
        missing: MissingResourceFormatter,
        *,
        own_templates: bool,
        templates_in_list: bool = False,
        last_modified: bool = False,
        ready_tasks: ReadyListing | None = None,
        task_packs: bool = False,
    ) -> None:
        """`own_templates`: also offer Dittybag's own templates.

        `templates_in_list`: list templates as resources, too.
        `last_modified`: list when a resource was changed last.
        `ready_tasks`: how the resource of ready tasks is listed; `None` if there is none.
        `task_packs`: also offer the context packs of tasks.
        """
        self._scope = scope
        self._resources = scope.workspace.resources
        self._missing = missing
        self._own = (*(_OWN if own_templates else ()), *((agent_context.TEMPLATE,) if task_packs else ()))
        self._listed_templates = self._own + ((ready_resource.TEMPLATE,) if ready_tasks == "template" else ())
        self._listed_kinds = None if templates_in_list else False
        self._last_modified = last_modified
        self._has_ready = ready_tasks is not None
        self._ready = (ready_resource.INFO,) if ready_tasks == "resource" else ()

    def stamp(self, ctx: Context) -> Hashable:
        if not self._scope.can_see_project(ctx):
            return None
        return self._scope.workspace.store.stamp("resource", self._scope.project_of(ctx))

    @as_protocol_errors
    async def list(self, position: str | int | None, ctx: Context) -> Page[ResourceInfo]:
        page, after = await self._page(position, ctx, templates=self._listed_kinds)
        infos = (
            ResourceInfo(
                uri=item.uri,
                size=item.size,
                annotations=modified_at(item.updated_at) if self._last_modified else None,
                **_texts(item, ctx),
            )
            for item in page
        )
        return Page((*infos, *(self._ready if after is None else ())), after)

    @as_protocol_errors
    async def templates(self, position: str | int | None, ctx: Context) -> Page[ResourceTemplateInfo]:
        page, after = await self._page(position, ctx, templates=True)
        own = self._listed_templates if after is None else ()
        infos = (ResourceTemplateInfo(uri_template=item.uri, **_texts(item, ctx)) for item in page)
        return Page((*infos, *own), after)

    async def _page(
        self, position: str | int | None, ctx: Context, *, templates: bool | None
    ) -> tuple[tuple[Resource, ...], int | None]:
        found = await self._resources.listing(
            self._scope.caller(ctx), parse_position(position), PAGE_SIZE + 1, templates=templates
        )
        page, more = take_page(found, _length)
        return tuple(page), page[-1].number if more else None

    @as_protocol_errors
    async def read(self, uri: str, ctx: Context) -> ReadResult:
        caller = self._scope.caller(ctx)
        if self._has_ready and uri == ready_resource.URI:
            text = await ready_resource.ready_content(self._scope.workspace, caller)
            return _contents(uri, ready_resource.INFO.mime_type, text)
        try:
            resource, content = await self._resources.read(caller, uri)
        except ResourceNotFound as error:
            return await self._read_by_template(uri, error.project, ctx)
        return _contents(uri, resource.mime_type, content.decode() if resource.is_text else content)

    async def _read_by_template(self, uri: str, project: str, ctx: Context) -> ReadResult:
        caller = self._scope.caller(ctx)
        for template in await self._resources.templates(caller):
            values = uri_templates.parse(template.uri).match(uri)
            if values is not None:
                _, content = await self._resources.read(caller, template.uri)
                if not template.is_text:
                    return _contents(uri, template.mime_type, content)
                rendered = await self._scope.templates.render_resource(
                    content.decode(), values, client=self._scope.client_key(ctx)
                )
                return _contents(uri, template.mime_type, rendered)
        for own in self._own:
            values = uri_templates.parse(own.uri_template).match(uri)
            text = None if values is None else await self._own_content(own, values, ctx)
            if text is not None:
                return _contents(uri, own.mime_type, text)
        raise self._missing(uri, project)

    async def _own_content(
        self, template: ResourceTemplateInfo, values: dict[str, str], ctx: Context
    ) -> str | None:
        if template is agent_context.TEMPLATE:
            return await agent_context.task_pack(self._scope, values["id"], ctx)
        if template is _TAGGED:
            page, matched = await self._scope.workspace.prompts.by_tags(
                self._scope.caller(ctx), [values["tag"]], 100, 0
            )
            return encode(_tag_overview(values["tag"].lower(), page)).decode() if matched else None
        for size in await self._scope.workspace.projects.all(self._scope.caller(ctx)):
            if size.project.name == values["project"]:
                counts = {"prompts": size.prompts, "resources": size.resources, "tasks": size.tasks}
                return encode({"project": size.project.name, **counts}).decode()
        return None

    @as_protocol_errors
    async def complete(self, request: CompletionRequest, ctx: Context) -> Sequence[str]:
        own = {template.uri_template for template in self._own}
        stored = {template.uri for template in await self._resources.templates(self._scope.caller(ctx))}
        if request.target not in own | stored:
            raise InvalidParams(f"Unknown resource template: {request.target}")
        template = uri_templates.parse(request.target)
        if request.argument not in template.variables:
            raise InvalidParams(f"The template {request.target} has no variable {request.argument}")
        return await self._used_values(template, request, ctx) or await complete_by_name(
            self._scope, request.argument, request.value, ctx
        )

    async def _used_values(
        self, template: uri_templates.UriTemplate, request: CompletionRequest, ctx: Context
    ) -> Sequence[str]:
        """Return the values of a template variable in the URIs of stored resources."""
        prefix = template.text.partition("{")[0]
        uris = await self._resources.uris(self._scope.caller(ctx), prefix, _SAMPLE)
        found = [values for uri in uris if (values := template.match(uri)) is not None]
        used = [
            values[request.argument]
            for values in found
            if all(values.get(name, value) == value for name, value in request.others.items())
        ]
        return filter_by_prefix(list(dict.fromkeys(used)), request.value)


def modified_at(microseconds: int) -> Annotations:
    """Return the annotation that says when a resource was changed last."""
    return Annotations(last_modified=iso(microseconds))


def _tag_overview(tag: str, page: PromptPage) -> dict[str, object]:
    prompts = [{"id": item.id, "name": item.name, "title": item.title} for item in page.prompts]
    return {"tag": tag, "total": page.total, "prompts": prompts}


def _texts(resource: Resource, ctx: Context) -> dict[str, Any]:
    """Return the fields that resources and templates have in common.

    A revision without `title` has the human name as the name, if there is one.
    """
    has_titles = ctx.revision.version >= V2025_06_18
    return {
        "name": resource.name if has_titles else resource.title or resource.name,
        "title": resource.title,
        "description": resource.description,
        "mime_type": resource.mime_type,
    }


def _length(resource: Resource) -> int:
    texts = (resource.uri, resource.name, resource.title, resource.description, resource.mime_type)
    return sum(len(text) for text in texts if text) + 100


def _contents(uri: str, mime_type: str | None, content: str | bytes) -> ReadResult:
    if isinstance(content, str):
        return ReadResult(contents=(TextContents(uri=uri, mime_type=mime_type, text=content),))
    return ReadResult(contents=(BlobContents(uri=uri, mime_type=mime_type, blob=content),))
