"""Use cases for prompts and tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from dittybag.domain.errors import (
    NameTaken,
    NotFound,
    Outdated,
    PromptNotFound,
    TitleTaken,
    require,
)
from dittybag.domain.names import NAME_LENGTH, name_from_title, numbered_names
from dittybag.domain.ports import Store, TemplateSyntax, Transaction
from dittybag.domain.projects import Project
from dittybag.domain.prompts import (
    MAX_TAGS,
    TITLE_LENGTH,
    Argument,
    Prompt,
    PromptListing,
    PromptOrder,
    PromptSummary,
    TagCount,
    normalise_tags,
    problems,
)
from dittybag.domain.queries import PromptQuery
from dittybag.services.caller import (
    Caller,
    ScopedStore,
    checked_query,
    readable_project,
    require_project_access,
    require_syntax,
    writable_project,
)

#: Maximum number of matches of a filter; callers that need more must narrow it.
MAX_MATCHES: Final = 1000


class PromptPage(Struct, frozen=True):
    """A page of prompts and their total number."""

    prompts: list[PromptSummary]
    total: int


class PromptEntries(Struct, frozen=True):
    """A page of filtered prompts and the number of matches."""

    entries: list[PromptSummary]
    total: int
    #: Whether there are more matches than `total`; they are not counted.
    is_more: bool = False


class PromptChange(Struct, frozen=True, kw_only=True):
    """The fields of a prompt to change; unset fields stay as they are."""

    name: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    tags: Sequence[str] | UnsetType = UNSET
    arguments: tuple[Argument, ...] | UnsetType = UNSET


class PromptAddress(Struct, frozen=True):
    """The address of a prompt: its id, its name, or any of name, id and title."""

    id: str | None = None
    name: str | None = None
    any: str | None = None

    async def find(self, transaction: Transaction, project: Project) -> Prompt:
        """Return the prompt. Raises `PromptNotFound`."""
        found = await self.lookup(transaction, project.id)
        if found is None:
            raise PromptNotFound(self.any or self.id or self.name or "", project.name)
        return found

    async def lookup(self, transaction: Transaction, project: int) -> Prompt | None:
        """Return the prompt, or `None`."""
        prompts = transaction.prompts
        if self.any is not None:
            return (
                await prompts.by_name(project, self.any)
                or await prompts.by_id(project, self.any.lower())
                or await prompts.by_title(project, self.any)
            )
        if self.id is not None:
            return await prompts.by_id(project, self.id.lower())
        return await prompts.by_name(project, self.name or "")


class PromptService:
    """Creates, finds, lists, changes and deletes prompts."""

    def __init__(self, store: Store, syntax: TemplateSyntax | None = None) -> None:
        self._store = ScopedStore(store)
        self._syntax = syntax

    async def create(
        self,
        caller: Caller,
        *,
        content: str,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        tags: Sequence[str] = (),
        arguments: Sequence[Argument] = (),
    ) -> tuple[Prompt, Project]:
        """Create a prompt. If only one of name and title is given, the other is derived from it."""
        require(
            problems(
                name=name,
                title=title,
                content=content,
                description=description,
                tags=tags,
                arguments=arguments,
            )
        )
        if arguments:
            await require_syntax(self._syntax, caller, content)

        derived = name_from_title(title or "") if name is None else name

        async def work(transaction: Transaction) -> tuple[Prompt, Project]:
            project = await writable_project(transaction, caller)
            prompt = Prompt(
                number=0,
                id=transaction.new_id(),
                project=project.id,
                name=await _free_name(transaction, project, name, derived),
                title=await _free_title(transaction, project, name, title),
                description=description or None,
                content=content,
                tags=normalise_tags(tags),
                arguments=tuple(arguments),
                created_at=transaction.now,
                updated_at=transaction.now,
            )
            stored = await transaction.write("create", None, prompt)
            assert stored is not None
            return stored, project

        return await self._store.write(caller, work)

    async def get(self, caller: Caller, address: PromptAddress) -> Prompt:
        async def lookup(transaction: Transaction) -> Prompt | None:
            return await address.lookup(transaction, caller.project)

        async def work(transaction: Transaction) -> Prompt:
            return await address.find(transaction, await readable_project(transaction, caller))

        require_project_access(caller)
        # If the prompt is missing, a second query finds out whether its project is missing too.
        found = None if address.any is not None else await self._store.read(caller, lookup, single=True)
        return await self._store.read(caller, work) if found is None else found

    async def update(
        self, caller: Caller, address: PromptAddress, change: PromptChange, *, version: int | None = None
    ) -> tuple[Prompt, Project]:
        """Change the given fields. Raises `Outdated` if `version` is given and not the current version."""
        given: dict[str, Any] = {
            name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not UNSET
        }
        require(problems(**given))
        await self._require_syntax(caller, address, change)
        if change.tags is not UNSET:
            given["tags"] = normalise_tags(change.tags)
        if change.description is not UNSET:
            given["description"] = change.description or None

        async def work(transaction: Transaction) -> tuple[Prompt, Project]:
            project = await writable_project(transaction, caller)
            prompt = await address.find(transaction, project)
            if version is not None and version != prompt.version:
                raise Outdated("prompt", prompt.name)
            name = given.get("name", prompt.name)
            if name != prompt.name and await transaction.prompts.name_taken(project.id, name):
                raise NameTaken("prompt", name, project.name)
            title = given.get("title", prompt.title)
            if title != prompt.title and await transaction.prompts.title_taken(project.id, title):
                raise TitleTaken(title, project.name)
            changed = replace(prompt, **given, updated_at=transaction.now, version=prompt.version + 1)
            await transaction.write("update", prompt, changed)
            return changed, project

        return await self._store.write(caller, work)

    async def _require_syntax(self, caller: Caller, address: PromptAddress, change: PromptChange) -> None:
        """Raise `Invalid` if the change makes the prompt a template that cannot be parsed."""
        if self._syntax is None or (change.content is UNSET and not change.arguments):
            return
        content, arguments = change.content, change.arguments
        if content is UNSET or arguments is UNSET:
            try:
                prompt = await self.get(caller, address)
            except NotFound:
                # The update reports it.
                return
            content = prompt.content if content is UNSET else content
            arguments = prompt.arguments if arguments is UNSET else arguments
        if arguments:
            await require_syntax(self._syntax, caller, content)

    async def delete(self, caller: Caller, address: PromptAddress) -> tuple[Prompt, Project]:
        async def work(transaction: Transaction) -> tuple[Prompt, Project]:
            project = await writable_project(transaction, caller)
            prompt = await address.find(transaction, project)
            await transaction.write("delete", prompt, None)
            return prompt, project

        return await self._store.write(caller, work)

    async def delete_all(self, caller: Caller, addresses: Sequence[PromptAddress]) -> list[Prompt]:
        """Delete prompts: all of them or, if one does not exist, none."""

        async def work(transaction: Transaction) -> list[Prompt]:
            project = await writable_project(transaction, caller)
            found = [await address.find(transaction, project) for address in addresses]
            deleted = list({prompt.id: prompt for prompt in found}.values())
            for prompt in deleted:
                await transaction.write("delete", prompt, None)
            return deleted

        return await self._store.write(caller, work)

    async def names(self, caller: Caller, limit: int) -> list[str]:
        """Return names in alphabetical order."""

        async def work(transaction: Transaction) -> list[str]:
            await readable_project(transaction, caller)
            return await transaction.prompts.names(caller.project, limit)

        return await self._store.read(caller, work)

    async def listing(self, caller: Caller, after: int, limit: int) -> list[PromptListing]:
        """Return prompts in creation order, starting after number `after`."""

        async def work(transaction: Transaction) -> list[PromptListing]:
            await readable_project(transaction, caller)
            return await transaction.prompts.listing(caller.project, after, limit)

        return await self._store.read(caller, work)

    async def recent(self, caller: Caller, limit: int, offset: int) -> PromptPage:
        """Return prompts, most recently updated first."""

        async def work(transaction: Transaction) -> PromptPage:
            await readable_project(transaction, caller)
            query = PromptQuery(project=caller.project, limit=limit, offset=offset)
            total, found = await transaction.prompts.page(query)
            return PromptPage(found, total)

        return await self._store.read(caller, work)

    async def search(
        self, caller: Caller, query: str, limit: int, offset: int, tags: Sequence[str] = ()
    ) -> PromptPage:
        """Return prompts with `query` in title or content, ignoring case; all prompts if it is empty.

        With `tags`, only prompts with any of them.
        """
        wanted = normalise_tags(tags)
        if not checked_query(query):
            if wanted:
                return (await self.by_tags(caller, wanted, limit, offset))[0]
            return await self.recent(caller, limit, offset)

        async def work(transaction: Transaction) -> PromptPage:
            await readable_project(transaction, caller)
            total, found = await transaction.prompts.page(
                PromptQuery(project=caller.project, text=query, any_tag=wanted, limit=limit, offset=offset)
            )
            return PromptPage(found, total)

        return await self._store.read(caller, work, slow=True)

    async def by_tags(
        self, caller: Caller, tags: Sequence[str], limit: int, offset: int
    ) -> tuple[PromptPage, list[str]]:
        """Return prompts with any of the tags, and those of the tags that are in use."""
        wanted = normalise_tags(tags)

        async def work(transaction: Transaction) -> tuple[PromptPage, list[str]]:
            await readable_project(transaction, caller)
            if not wanted:
                return PromptPage([], 0), []
            query = PromptQuery(project=caller.project, any_tag=wanted, limit=limit, offset=offset)
            total, found = await transaction.prompts.page(query)
            in_use = await transaction.prompts.existing_tags(caller.project, wanted)
            return PromptPage(found, total), in_use

        return await self._store.read(caller, work)

    async def filter(
        self,
        caller: Caller,
        *,
        query: str = "",
        tags: Sequence[str] = (),
        order: PromptOrder = "updated",
        limit: int,
        offset: int,
    ) -> PromptEntries:
        """Return prompts with all of `tags` and with `query` in title or content, ignoring case."""
        wanted = normalise_tags(tags)[:MAX_TAGS]
        checked_query(query)

        async def work(transaction: Transaction) -> PromptEntries:
            await readable_project(transaction, caller)
            total, found = await transaction.prompts.page(
                PromptQuery(
                    project=caller.project,
                    text=query,
                    all_tags=wanted,
                    order=order,
                    limit=limit,
                    offset=offset,
                    max_matches=MAX_MATCHES + 1,
                )
            )
            if (query or wanted) and total > MAX_MATCHES:
                return PromptEntries(found[: max(MAX_MATCHES - offset, 0)], MAX_MATCHES, is_more=True)
            return PromptEntries(found, total)

        return await self._store.read(caller, work, slow=bool(query or wanted))

    async def tags(self, caller: Caller) -> list[TagCount]:
        """Return the tags in use, most used first."""

        async def work(transaction: Transaction) -> list[TagCount]:
            await readable_project(transaction, caller)
            return await transaction.prompts.tags_in_use(caller.project)

        return await self._store.read(caller, work)

    async def retag(
        self, caller: Caller, address: PromptAddress, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> tuple[Prompt, bool]:
        """Add and remove tags of a prompt. Returns the prompt and whether it changed."""
        require(problems(tags=add))
        removed = normalise_tags(remove)

        async def work(transaction: Transaction) -> tuple[Prompt, bool]:
            prompt = await address.find(transaction, await writable_project(transaction, caller))
            kept = [tag for tag in prompt.tags if tag not in removed]
            tags = normalise_tags([*kept, *add])
            require(problems(tags=tags))
            if tags == prompt.tags:
                return prompt, False
            return await _set_tags(transaction, prompt, tags), True

        return await self._store.write(caller, work)

    async def rename_tag(self, caller: Caller, old: str, new: str) -> list[str]:
        """Rename a tag on every prompt of the project in one transaction.

        Returns the names of these prompts; empty if no prompt has the tag.
        """
        require(problems(tags=[new]))
        (old,), (new,) = normalise_tags([old]), normalise_tags([new])

        async def work(transaction: Transaction) -> list[str]:
            project = await writable_project(transaction, caller)
            names = []
            for found in await transaction.prompts.ids_with_tag(project.id, old):
                # One at a time: all prompts might not fit into memory.
                prompt = await PromptAddress(id=found).find(transaction, project)
                tags = normalise_tags(new if tag == old else tag for tag in prompt.tags)
                if tags != prompt.tags:
                    await _set_tags(transaction, prompt, tags)
                names.append(prompt.name)
            return names

        return await self._store.write(caller, work)


async def _set_tags(transaction: Transaction, prompt: Prompt, tags: tuple[str, ...]) -> Prompt:
    changed = replace(prompt, tags=tags, updated_at=transaction.now, version=prompt.version + 1)
    await transaction.write("update", prompt, changed)
    return changed


async def _free_name(transaction: Transaction, project: Project, name: str | None, derived: str) -> str:
    if name is not None:
        if await transaction.prompts.name_taken(project.id, name):
            raise NameTaken("prompt", name, project.name)
        return name
    for candidate in numbered_names(derived, "-{}", NAME_LENGTH):
        if not await transaction.prompts.name_taken(project.id, candidate):
            return candidate
    raise AssertionError("alternatives never end")


async def _free_title(transaction: Transaction, project: Project, name: str | None, title: str | None) -> str:
    if title is not None:
        if await transaction.prompts.title_taken(project.id, title):
            raise TitleTaken(title, project.name)
        return title
    for candidate in numbered_names(name or "", " ({})", TITLE_LENGTH):
        if not await transaction.prompts.title_taken(project.id, candidate):
            return candidate
    raise AssertionError("alternatives never end")
