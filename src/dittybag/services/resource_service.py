"""Use cases for resources and resource templates."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from dittybag.domain.errors import (
    Conflict,
    NameTaken,
    NotFound,
    Outdated,
    Problem,
    ResourceNotFound,
    SeveralConflicts,
    UriTaken,
    require,
)
from dittybag.domain.ports import Store, TemplateSyntax, Transaction
from dittybag.domain.projects import Project
from dittybag.domain.prompts import size_problem
from dittybag.domain.queries import ResourceOrder, ResourceQuery
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
    readable_project,
    require_syntax,
    writable_project,
)

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


class ResourcePage(Struct, frozen=True):
    """A page of resources."""

    #: The number of resources on all pages.
    total: int
    resources: list[Resource]
    #: The MIME types in the project and the number of resources of each, most used first.
    types: list[tuple[str, int]]


class ResourceService:
    """Creates, finds, lists, changes and deletes resources."""

    def __init__(self, store: Store, syntax: TemplateSyntax | None = None) -> None:
        self._store = ScopedStore(store)
        self._syntax = syntax
        self._stamp = store.stamp
        #: The MIME types of projects, with the stamp they were read at.
        self._types: dict[int, tuple[Hashable, list[tuple[str, int]]]] = {}

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
        title = title or None
        require(
            _problems(content, name=name, uri=uri, mime_type=mime_type, title=title, description=description)
        )
        data = _encode(content, mime_type)
        if is_template(uri) and is_text(mime_type):
            await require_syntax(self._syntax, caller, data.decode())

        async def work(transaction: Transaction) -> tuple[Resource, Project]:
            project = await writable_project(transaction, caller)
            await _require_free(transaction, project, name, uri)
            resource = Resource(
                number=0,
                id=transaction.new_id(),
                project=project.id,
                name=name,
                uri=uri,
                title=title,
                description=description or None,
                mime_type=mime_type,
                sha256=await transaction.store_content(data),
                size=len(data),
                created_at=transaction.now,
                updated_at=transaction.now,
            )
            stored = await transaction.write("create", None, resource)
            assert stored is not None
            return stored, project

        return await self._store.write(caller, work)

    async def update(
        self, caller: Caller, name: str, change: ResourceChange, *, version: int | None = None
    ) -> tuple[Resource, Project]:
        """Change the given fields. Raises `Outdated` if `version` is given and not the current version."""
        content = None if change.content is UNSET else change.content
        texts = {
            field: value or None
            for field in ("title", "description")
            if (value := getattr(change, field)) is not UNSET
        }
        address = {
            field: value for field in ("name", "uri") if (value := getattr(change, field)) is not UNSET
        }

        await self._require_syntax(caller, name, change)

        async def work(transaction: Transaction) -> tuple[Resource, Project]:
            project = await writable_project(transaction, caller)
            resource = await _find_resource(transaction, project, name)
            if version is not None and version != resource.version:
                raise Outdated("resource", resource.name)
            kind = resource.mime_type if change.mime_type is UNSET else change.mime_type
            # The MIME type that the content is checked against may be the stored one.
            require(_problems(content, mime_type=kind, **address, **texts))
            renamed = {field: value for field, value in address.items() if value != getattr(resource, field)}
            await _require_free(transaction, project, renamed.get("name"), renamed.get("uri"))
            changed = replace(
                resource,
                **renamed,
                **texts,
                mime_type=kind,
                updated_at=transaction.now,
                version=resource.version + 1,
            )
            if content is not None:
                data = _encode(content, kind)
                changed = replace(changed, sha256=await transaction.store_content(data), size=len(data))
            elif is_text(kind) and not resource.is_text:
                _require_text(await transaction.content(resource.sha256), kind)
            await transaction.write("update", resource, changed)
            return changed, project

        return await self._store.write(caller, work)

    async def _require_syntax(self, caller: Caller, name: str, change: ResourceChange) -> None:
        """Raise `Invalid` if the change makes the resource a template that cannot be parsed."""
        if self._syntax is None or change.content is change.uri is change.mime_type is UNSET:
            return

        async def work(transaction: Transaction) -> tuple[Resource, bytes | None]:
            project = await readable_project(transaction, caller)
            resource = await _find_resource(transaction, project, name)
            uri = resource.uri if change.uri is UNSET else change.uri
            is_needed = change.content is UNSET and is_template(uri)
            return resource, await transaction.content(resource.sha256) if is_needed else None

        try:
            resource, stored = await self._store.read(caller, work)
        except NotFound:
            # The update reports it.
            return
        uri = resource.uri if change.uri is UNSET else change.uri
        kind = resource.mime_type if change.mime_type is UNSET else change.mime_type
        content = stored if change.content is UNSET else change.content
        if is_template(uri) and is_text(kind) and content is not None:
            try:
                text = content if isinstance(content, str) else content.decode()
            except UnicodeDecodeError:
                # Not text, which the update reports.
                return
            await require_syntax(self._syntax, caller, text)

    async def delete(self, caller: Caller, name: str) -> tuple[Resource, Project]:
        async def work(transaction: Transaction) -> tuple[Resource, Project]:
            project = await writable_project(transaction, caller)
            resource = await _find_resource(transaction, project, name)
            await transaction.write("delete", resource, None)
            return resource, project

        return await self._store.write(caller, work)

    async def delete_all(self, caller: Caller, references: Sequence[str]) -> list[Resource]:
        """Delete resources by name or URI: all of them or, if one does not exist, none."""

        async def work(transaction: Transaction) -> list[Resource]:
            project = await writable_project(transaction, caller)
            found = [await _by_name_or_uri(transaction, project, reference) for reference in references]
            deleted = list({resource.id: resource for resource in found}.values())
            for resource in deleted:
                await transaction.write("delete", resource, None)
            return deleted

        return await self._store.write(caller, work)

    async def get(self, caller: Caller, reference: str) -> Resource:
        """Return a resource by name or URI. Raises `ResourceNotFound`."""

        async def work(transaction: Transaction) -> Resource:
            return await _by_name_or_uri(transaction, await readable_project(transaction, caller), reference)

        return await self._store.read(caller, work)

    async def by_id(self, caller: Caller, id: str) -> Resource:
        """Return a resource by id. Raises `ResourceNotFound`."""

        async def work(transaction: Transaction) -> Resource:
            project = await readable_project(transaction, caller)
            found: Resource | None = await transaction.find("resource", id=id)
            if found is None or found.project != project.id:
                raise ResourceNotFound(id, project.name)
            return found

        return await self._store.read(caller, work)

    async def contents(self, caller: Caller, states: Sequence[Resource]) -> list[bytes]:
        """Return the contents of current or former versions of resources in the caller's project."""

        async def work(transaction: Transaction) -> list[bytes]:
            project = await readable_project(transaction, caller)
            if any(state.project != project.id for state in states):
                raise ValueError("a resource of another project")
            return [await transaction.content(state.sha256) for state in states]

        return await self._store.read(caller, work)

    async def page(
        self,
        caller: Caller,
        *,
        text: str = "",
        mime_type: str | None = None,
        order: ResourceOrder = "updated",
        limit: int,
        offset: int = 0,
    ) -> ResourcePage:
        """Return resources and templates of a type, or of any, with `text` in name, title or URI."""
        checked_query(text)

        async def work(transaction: Transaction) -> ResourcePage:
            project = await readable_project(transaction, caller)
            query = ResourceQuery(
                project=project.id, text=text, mime_type=mime_type, order=order, limit=limit, offset=offset
            )
            total, found = await transaction.resources.page(query)
            if types is not None:
                return ResourcePage(total, found, types)
            return ResourcePage(total, found, await transaction.resources.types(project.id, _MAX_TYPES))

        stamp = self._stamp("resource", caller.project)
        known, types = self._types.get(caller.project, (None, None))
        if stamp is None or stamp != known:
            types = None
        page = await self._store.read(caller, work, slow=True)
        # Cached because counting the types reads all resources.
        if stamp is not None:
            if len(self._types) >= _MAX_CACHED:
                self._types.clear()
            self._types[caller.project] = stamp, page.types
        return page

    async def all(self, caller: Caller) -> list[Resource]:
        """Return all resources and templates in creation order."""

        async def work(transaction: Transaction) -> list[Resource]:
            await readable_project(transaction, caller)
            return await transaction.resources.listing(caller.project)

        return await self._store.read(caller, work)

    async def read(self, caller: Caller, uri: str) -> tuple[Resource, bytes]:
        """Return a resource with its content. Raises `ResourceNotFound`."""

        async def work(transaction: Transaction) -> tuple[Resource, bytes]:
            project = await readable_project(transaction, caller)
            resource = await transaction.resources.by_uri(project.id, uri)
            if resource is None:
                raise ResourceNotFound(uri, project.name)
            return resource, await transaction.content(resource.sha256)

        return await self._store.read(caller, work)

    async def templates(self, caller: Caller) -> list[Resource]:
        """Return the resource templates: resources whose URI has variables."""

        async def work(transaction: Transaction) -> list[Resource]:
            await readable_project(transaction, caller)
            return await transaction.resources.listing(caller.project, templates=True)

        return await self._store.read(caller, work)

    async def listing(
        self, caller: Caller, after: int, limit: int, *, templates: bool | None
    ) -> list[Resource]:
        """Return resources, templates or (`None`) both in creation order, starting after number `after`."""

        async def work(transaction: Transaction) -> list[Resource]:
            await readable_project(transaction, caller)
            return await transaction.resources.listing(
                caller.project, after=after, limit=limit, templates=templates
            )

        return await self._store.read(caller, work)

    async def uris(self, caller: Caller, prefix: str, limit: int) -> list[str]:
        async def work(transaction: Transaction) -> list[str]:
            await readable_project(transaction, caller)
            return await transaction.resources.uris(caller.project, prefix, limit)

        return await self._store.read(caller, work)


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


async def _require_free(
    transaction: Transaction, project: Project, name: str | None, uri: str | None
) -> None:
    conflicts: list[Conflict] = []
    if name is not None and await transaction.resources.by_name(project.id, name) is not None:
        conflicts.append(NameTaken("resource", name, project.name))
    if uri is not None and await transaction.resources.by_uri(project.id, uri) is not None:
        conflicts.append(UriTaken(uri, project.name))
    if conflicts:
        raise conflicts[0] if len(conflicts) == 1 else SeveralConflicts(conflicts)


async def _by_name_or_uri(transaction: Transaction, project: Project, reference: str) -> Resource:
    resource = await transaction.resources.by_name(project.id, reference)
    resource = resource or await transaction.resources.by_uri(project.id, reference)
    if resource is None:
        raise ResourceNotFound(reference, project.name)
    return resource


async def _find_resource(transaction: Transaction, project: Project, name: str) -> Resource:
    resource = await transaction.resources.by_name(project.id, name)
    if resource is None:
        raise ResourceNotFound(name, project.name)
    return resource
