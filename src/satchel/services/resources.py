"""Use cases of resources and resource templates."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from satchel.domain.errors import (
    Conflict,
    NameTaken,
    Problem,
    ResourceNotFound,
    SeveralConflicts,
    UriTaken,
    require,
)
from satchel.domain.ports import Store, Transaction
from satchel.domain.projects import Project
from satchel.domain.resources import (
    CONTENT_BYTES,
    DEFAULT_MIME_TYPE,
    Resource,
    content_bytes,
    is_text,
    problems,
)
from satchel.services.caller import Caller, project_of


class ResourceChange(Struct, frozen=True, kw_only=True):
    """What to change of a resource; what is unset stays."""

    content: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


class Resources:
    """Create, find, list, change and delete resources."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def create(
        self,
        caller: Caller,
        *,
        name: str,
        uri: str,
        content: str,
        mime_type: str = DEFAULT_MIME_TYPE,
        title: str | None = None,
        description: str | None = None,
    ) -> tuple[Resource, Project]:
        """Store a new resource. Content of a type that is not text is base64; an empty title means none."""
        title = title or None
        require(
            problems(
                name=name, uri=uri, content=content, mime_type=mime_type, title=title, description=description
            )
        )
        data = content_bytes(content, mime_type)

        async def work(transaction: Transaction) -> tuple[Resource, Project]:
            project = await project_of(transaction, caller)
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
                sha256=await transaction.keep(data),
                size=len(data),
                created_at=transaction.now,
                updated_at=transaction.now,
            )
            stored = await transaction.write("create", None, resource)
            assert stored is not None
            return stored, project

        return await self._store.write(work, actor=caller.actor)

    async def update(self, caller: Caller, name: str, change: ResourceChange) -> tuple[Resource, Project]:
        content = None if change.content is UNSET else change.content
        texts = {
            field: value or None
            for field in ("title", "description")
            if (value := getattr(change, field)) is not UNSET
        }

        async def work(transaction: Transaction) -> tuple[Resource, Project]:
            project = await project_of(transaction, caller)
            resource = await _existing(transaction, project, name)
            kind = resource.mime_type if change.mime_type is UNSET else change.mime_type
            # Only now is it known of what type the content has to be.
            require(problems(content=content, mime_type=kind, **texts))
            changed = replace(
                resource,
                **texts,
                mime_type=kind,
                updated_at=transaction.now,
                version=resource.version + 1,
            )
            if content is not None:
                data = content_bytes(content, kind)
                changed = replace(changed, sha256=await transaction.keep(data), size=len(data))
            elif is_text(kind) and not resource.is_text:
                _require_text(await transaction.content(resource.sha256), kind)
            await transaction.write("update", resource, changed)
            return changed, project

        return await self._store.write(work, actor=caller.actor)

    async def delete(self, caller: Caller, name: str) -> tuple[Resource, Project]:
        async def work(transaction: Transaction) -> tuple[Resource, Project]:
            project = await project_of(transaction, caller)
            resource = await _existing(transaction, project, name)
            await transaction.write("delete", resource, None)
            return resource, project

        return await self._store.write(work, actor=caller.actor)

    async def read(self, caller: Caller, uri: str) -> tuple[Resource, bytes]:
        """A resource with its content. Raises `ResourceNotFound`."""

        async def work(transaction: Transaction) -> tuple[Resource, bytes]:
            project = await project_of(transaction, caller)
            resource = await transaction.resources.by_uri(project.id, uri)
            if resource is None:
                raise ResourceNotFound(uri, project.name)
            return resource, await transaction.content(resource.sha256)

        return await self._store.read(work)

    async def templates(self, caller: Caller) -> list[Resource]:
        """Those whose URIs have variables."""

        async def work(transaction: Transaction) -> list[Resource]:
            return await transaction.resources.templates(caller.project)

        return await self._store.read(work)

    async def listing(self, caller: Caller, after: int, limit: int, *, templates: bool) -> list[Resource]:
        """In the order of creation."""

        async def work(transaction: Transaction) -> list[Resource]:
            await project_of(transaction, caller)
            return await transaction.resources.listing(caller.project, after, limit, templates=templates)

        return await self._store.read(work)

    async def uris(self, caller: Caller, prefix: str, limit: int) -> list[str]:
        async def work(transaction: Transaction) -> list[str]:
            return await transaction.resources.uris(caller.project, prefix, limit)

        return await self._store.read(work)


def _require_text(content: bytes, mime_type: str) -> None:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text or len(content) > CONTENT_BYTES:
        problem = f"MIME type {mime_type} is for text, and the content is not: give new content too"
        require([Problem("mime_type", problem)])


async def _require_free(transaction: Transaction, project: Project, name: str, uri: str) -> None:
    conflicts: list[Conflict] = []
    if await transaction.resources.by_name(project.id, name) is not None:
        conflicts.append(NameTaken("resource", name, project.name))
    if await transaction.resources.by_uri(project.id, uri) is not None:
        conflicts.append(UriTaken(uri, project.name))
    if conflicts:
        raise conflicts[0] if len(conflicts) == 1 else SeveralConflicts(conflicts)


async def _existing(transaction: Transaction, project: Project, name: str) -> Resource:
    resource = await transaction.resources.by_name(project.id, name)
    if resource is None:
        raise ResourceNotFound(name, project.name)
    return resource
