"""Use cases for resources and resource templates."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.errors import Conflict, NotFound, Problem, ResourceNotFound, SeveralConflicts, require
from dittybag.domain.ports import Store, TemplateSyntax, Transaction
from dittybag.domain.projects import Project
from dittybag.domain.prompts import size_problem
from dittybag.domain.queries import ResourceQuery
from dittybag.domain.resources import (
    CONTENT_BYTES,
    DEFAULT_MIME_TYPE,
    Resource,
    content_bytes,
    is_template,
    is_text,
    problems,
)
from dittybag.services.caller import (
    Caller,
    ScopedStore,
    checked_query,
    existing_project,
    readable_project,
    reading,
    require_project_access,
    require_syntax,
    writable_project,
    writing,
)
from dittybag.services.entity_writes import (
    create,
    delete_all,
    find_conflicts,
    given_fields,
    next_version,
    require_version,
)

_RESOURCE: Final = ENTITY_TYPES["resource"]

#: Maximum number of MIME types in a filter.
_MAX_TYPES: Final = 50
#: Maximum number of projects whose MIME types are cached.
_MAX_CACHED: Final = 100


class ResourceChange(Struct, frozen=True, kw_only=True):
    """The fields of a resource to change; unset fields stay as they are."""

    name: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET
    #: Bytes are stored unchanged; a string is base64 if the MIME type is not a text type.
    content: str | bytes | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


class NewResource(Struct, frozen=True, kw_only=True):
    """A resource to create together with others. Its URI is not a template."""

    name: str
    uri: str
    content: bytes
    mime_type: str


class ResourcePage(Struct, frozen=True):
    """A page of resources."""

    #: The number of resources on all pages.
    total: int
    resources: list[Resource]
    #: The MIME types in the project and the number of resources of each, most used first.
    types: list[tuple[str, int]]


async def create_resource(
    transaction: Transaction, caller: Caller, fields: dict[str, Any], data: bytes
) -> tuple[Resource, Project]:
    project = await existing_project(transaction, caller)
    resource = Resource(
        number=0,
        id=transaction.new_id(),
        project=project.id,
        **fields,
        sha256="",
        size=len(data),
        created_at=transaction.now,
        updated_at=transaction.now,
    )
    await _require_unique(transaction, None, resource, project)
    resource = replace(resource, sha256=await transaction.store_content(data))
    return await create(transaction, resource), project


async def create_resources(
    transaction: Transaction, caller: Caller, drafts: Sequence[NewResource], *, skip_existing: bool
) -> tuple[list[Resource], list[NewResource]]:
    """Create resources, all of them or none; return them, and those that exist if these are skipped.

    Raises `SeveralConflicts` with one conflict for each of those that exist.
    """
    created, skipped, conflicts = [], [], []
    for draft in drafts:
        fields = _RESOURCE.normalise({"name": draft.name, "uri": draft.uri, "mime_type": draft.mime_type})
        try:
            created.append((await create_resource(transaction, caller, fields, draft.content))[0])
        except Conflict as conflict:
            skipped.append(draft)
            conflicts.append(conflict.conflicts[0] if isinstance(conflict, SeveralConflicts) else conflict)
    if conflicts and not skip_existing:
        raise conflicts[0] if len(conflicts) == 1 else SeveralConflicts(conflicts)
    return created, skipped


async def update_resource(
    transaction: Transaction, caller: Caller, name: str, change: ResourceChange, version: int | None
) -> tuple[Resource, Project]:
    """Change the given fields. Raises `Outdated` if `version` is given and not the current version."""
    project = await writable_project(transaction, caller)
    resource = await _find_by_name(transaction, project, name)
    require_version(resource, version)
    fields = _RESOURCE.normalise(given_fields(change, "content"))
    content = None if change.content is UNSET else change.content
    # The MIME type that the content is checked against may be the stored one.
    fields.setdefault("mime_type", resource.mime_type)
    require(_problems(content, **fields))
    if content is None and is_text(fields["mime_type"]) and not resource.is_text:
        _require_text(await transaction.content(resource.sha256), fields["mime_type"])
    changed = next_version(resource, transaction.now, **fields)
    await _require_unique(transaction, resource, changed, project)
    if content is not None:
        data = _encode(content, changed.mime_type)
        changed = replace(changed, sha256=await transaction.store_content(data), size=len(data))
    await transaction.write("update", resource, changed)
    return changed, project


async def delete_resource(transaction: Transaction, caller: Caller, name: str) -> tuple[Resource, Project]:
    project = await writable_project(transaction, caller)
    resource = await _find_by_name(transaction, project, name)
    await transaction.write("delete", resource, None)
    return resource, project


async def delete_resources(
    transaction: Transaction, caller: Caller, references: Sequence[str]
) -> list[Resource]:
    """Delete resources by name or URI: all of them or, if one does not exist, none."""
    project = await writable_project(transaction, caller)
    return await delete_all(transaction, await find_resources(transaction, project, references))


async def find_resources(
    transaction: Transaction, project: Project, references: Sequence[str]
) -> list[Resource]:
    """Return resources of a project by name or URI. Raises `ResourceNotFound`."""
    return [await _by_name_or_uri(transaction, project, reference) for reference in references]


async def find_resource(transaction: Transaction, caller: Caller, reference: str) -> Resource:
    """Return a resource by name or URI. Raises `ResourceNotFound`."""
    return await _by_name_or_uri(transaction, await readable_project(transaction, caller), reference)


async def resource_by_id(transaction: Transaction, caller: Caller, id: str) -> Resource:
    """Return a resource by id. Raises `ResourceNotFound`."""
    project = await readable_project(transaction, caller)
    found: Resource | None = await transaction.find("resource", id=id)
    if found is None or found.project != project.id:
        raise ResourceNotFound(id, project.name)
    return found


async def read_contents(transaction: Transaction, caller: Caller, states: Sequence[Resource]) -> list[bytes]:
    """Return the contents of current or former versions of resources in the caller's project."""
    project = await readable_project(transaction, caller)
    if any(state.project != project.id for state in states):
        raise ValueError("a resource of another project")
    return [await transaction.content(state.sha256) for state in states]


async def page_resources(
    transaction: Transaction, caller: Caller, query: ResourceQuery, types: list[tuple[str, int]] | None
) -> ResourcePage:
    """Return resources and templates of the caller's project.

    `types`: the MIME types in the project, if they are known.
    """
    checked_query(query.text)
    project = await readable_project(transaction, caller)
    total, found = await transaction.resources.page(replace(query, project=project.id))
    if types is None:
        types = await transaction.resources.types(project.id, _MAX_TYPES)
    return ResourcePage(total, found, types)


async def all_resources(transaction: Transaction, caller: Caller) -> list[Resource]:
    """Return all resources and templates in creation order."""
    await readable_project(transaction, caller)
    return await transaction.resources.listing(caller.project)


async def read_resource(transaction: Transaction, caller: Caller, uri: str) -> tuple[Resource, bytes]:
    """Return a resource with its content. Raises `ResourceNotFound`."""
    project = await readable_project(transaction, caller)
    resource = await transaction.resources.by_uri(project.id, uri)
    if resource is None:
        raise ResourceNotFound(uri, project.name)
    return resource, await transaction.content(resource.sha256)


async def list_templates(transaction: Transaction, caller: Caller) -> list[Resource]:
    """Return the resource templates: resources whose URI has variables."""
    await readable_project(transaction, caller)
    return await transaction.resources.listing(caller.project, templates=True)


async def list_resources(
    transaction: Transaction, caller: Caller, after: int, limit: int, *, templates: bool | None
) -> list[Resource]:
    """Return resources, templates or (`None`) both in creation order, starting after number `after`."""
    await readable_project(transaction, caller)
    return await transaction.resources.listing(caller.project, after=after, limit=limit, templates=templates)


async def list_uris(transaction: Transaction, caller: Caller, prefix: str, limit: int) -> list[str]:
    await readable_project(transaction, caller)
    return await transaction.resources.uris(caller.project, prefix, limit)


async def lookup_resource(transaction: Transaction, caller: Caller, name: str) -> Resource | None:
    """Return a resource of the caller's project, if there is one."""
    require_project_access(caller)
    return await transaction.resources.by_name(caller.project, name)


async def lookup_resource_by_uri(transaction: Transaction, caller: Caller, uri: str) -> Resource | None:
    """Return a resource of the caller's project, if there is one."""
    require_project_access(caller)
    return await transaction.resources.by_uri(caller.project, uri)


async def read_content(transaction: Transaction, caller: Caller, resource: Resource) -> bytes:
    """Return the content of a resource that the caller has read."""
    return await transaction.content(resource.sha256)


class ResourceService:
    """Creates, finds, lists, changes and deletes resources."""

    def __init__(self, store: Store, syntax: TemplateSyntax | None = None) -> None:
        self._store = ScopedStore(store)
        self._syntax = syntax
        self._stamp = store.stamp
        #: The MIME types of projects, with the stamp they were read at.
        self._types: dict[int, tuple[Hashable, list[tuple[str, int]]]] = {}

    delete = writing(delete_resource, checked=True)
    delete_all = writing(delete_resources, checked=True)
    get = reading(find_resource)
    by_id = reading(resource_by_id)
    contents = reading(read_contents)
    all = reading(all_resources, slow=True)
    read = reading(read_resource)
    templates = reading(list_templates)
    listing = reading(list_resources)
    uris = reading(list_uris, slow=True)

    async def create(
        self,
        caller: Caller,
        *,
        name: str,
        uri: str,
        content: str | bytes,
        mime_type: str = DEFAULT_MIME_TYPE,
        title: str | None = None,
        description: str | None = None,
    ) -> tuple[Resource, Project]:
        """Create a resource. An empty title means no title.

        Bytes are stored unchanged; a string is base64 if the MIME type is not a text type.
        """
        fields = _RESOURCE.normalise(
            {"name": name, "uri": uri, "mime_type": mime_type, "title": title, "description": description}
        )
        require(_problems(content, **fields))
        data = _encode(content, mime_type)
        if is_template(uri) and is_text(mime_type):
            await require_syntax(self._syntax, caller, data.decode())
        return await self._store.write(caller, create_resource, fields, data, checked=True)

    async def create_all(
        self, caller: Caller, drafts: Sequence[NewResource], *, skip_existing: bool = False
    ) -> tuple[list[Resource], list[NewResource]]:
        """See `create_resources`. Raises `Invalid` with the problems of all of them."""
        require(
            [
                Problem(problem.field, f"{draft.name}: {problem.message}")
                for draft in drafts
                for problem in _problems(
                    draft.content, name=draft.name, uri=draft.uri, mime_type=draft.mime_type
                )
            ]
        )
        return await self._store.write(
            caller, partial(create_resources, skip_existing=skip_existing), drafts, checked=True
        )

    async def update(
        self, caller: Caller, name: str, change: ResourceChange, *, version: int | None = None
    ) -> tuple[Resource, Project]:
        """See `update_resource`."""
        await self._require_syntax(caller, name, change)
        return await self._store.write(caller, update_resource, name, change, version, checked=True)

    async def _require_syntax(self, caller: Caller, name: str, change: ResourceChange) -> None:
        """Raise `Invalid` if the change makes the resource a template that cannot be parsed."""
        if self._syntax is None or change.content is change.uri is change.mime_type is UNSET:
            return
        try:
            text = await self._template_after(caller, name, change)
        except (NotFound, UnicodeDecodeError):
            # The update reports it.
            return
        if text is not None:
            await require_syntax(self._syntax, caller, text)

    async def _template_after(self, caller: Caller, name: str, change: ResourceChange) -> str | None:
        """Return the content of a resource after a change; `None` if it is not a template then."""
        resource = await self._store.read(caller, lookup_resource, name, single=True)
        if resource is None:
            return None
        uri = resource.uri if change.uri is UNSET else change.uri
        mime_type = resource.mime_type if change.mime_type is UNSET else change.mime_type
        if not is_template(uri) or not is_text(mime_type):
            return None
        content = change.content
        if content is UNSET:
            content = await self._store.read(caller, read_content, resource, single=True)
        return content.decode() if isinstance(content, bytes) else content

    async def look_up(self, caller: Caller, reference: str) -> Resource | None:
        """Return a resource by name or URI, or `None`."""
        found = await self._store.read(caller, lookup_resource, reference, single=True)
        # A URI has a scheme.
        if found is None and ":" in reference:
            found = await self._store.read(caller, lookup_resource_by_uri, reference, single=True)
        return found

    async def move_all(self, caller: Caller, references: Sequence[str], project: str) -> list[Resource]:
        """See `move_resources`."""
        # Imported here because few processes move anything.
        from dittybag.services.entity_moves import move_resources

        return await writing(move_resources)(self, caller, references, project)

    async def page(self, caller: Caller, query: ResourceQuery) -> ResourcePage:
        """See `page_resources`."""
        stamp = self._stamp("resource", caller.project)
        known, types = self._types.get(caller.project, (None, None))
        if stamp is None or stamp != known:
            types = None
        page = await self._store.read(caller, page_resources, query, types, slow=True)
        # Cached because counting the types reads all resources.
        if stamp is not None:
            if len(self._types) >= _MAX_CACHED:
                self._types.clear()
            self._types[caller.project] = stamp, page.types
        return page


def _require_text(content: bytes, mime_type: str) -> None:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text or len(content) > CONTENT_BYTES:
        problem = (
            f"MIME type {mime_type} is a text type, but the stored content is binary; send new content too"
        )
        require([Problem("mime_type", problem)])


def _problems(content: str | bytes | None, *, mime_type: str, **parts: str | None) -> Iterator[Problem]:
    """Yield all problems with the given fields and with content of either type."""
    if not isinstance(content, bytes):
        yield from problems(content=content, mime_type=mime_type, **parts)
        return
    yield from problems(mime_type=mime_type, **parts)
    if problem := size_problem(len(content), CONTENT_BYTES):
        yield Problem("content", problem)
    elif is_text(mime_type):
        try:
            yield from problems(content=content.decode())
        except UnicodeDecodeError:
            yield Problem("content", f"Content must be UTF-8 text, because {mime_type} is a text type")


def _encode(content: str | bytes, mime_type: str) -> bytes:
    return content if isinstance(content, bytes) else content_bytes(content, mime_type)


async def _require_unique(
    transaction: Transaction, before: Resource | None, after: Resource, project: Project
) -> None:
    conflicts = await find_conflicts(transaction, before, after, project)
    if conflicts:
        raise conflicts[0] if len(conflicts) == 1 else SeveralConflicts(conflicts)


async def _by_name_or_uri(transaction: Transaction, project: Project, reference: str) -> Resource:
    resource = await transaction.resources.by_name(project.id, reference)
    resource = resource or await transaction.resources.by_uri(project.id, reference)
    if resource is None:
        raise ResourceNotFound(reference, project.name)
    return resource


async def _find_by_name(transaction: Transaction, project: Project, name: str) -> Resource:
    resource = await transaction.resources.by_name(project.id, name)
    if resource is None:
        raise ResourceNotFound(name, project.name)
    return resource
