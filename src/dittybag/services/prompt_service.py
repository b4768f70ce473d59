"""Use cases of prompts and their tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from dittybag.domain.errors import (
    Invalid,
    NameTaken,
    Outdated,
    Problem,
    PromptNotFound,
    TitleTaken,
    require,
)
from dittybag.domain.names import NAME_LENGTH, name_from_title, numbered_names
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import Project
from dittybag.domain.prompts import (
    MAX_TAGS,
    TITLE_LENGTH,
    Argument,
    Prompt,
    PromptEntry,
    PromptListing,
    PromptOrder,
    PromptSummary,
    TagCount,
    normalise_tags,
    problems,
    template_problem,
)
from dittybag.services.caller import (
    Caller,
    ScopedStore,
    checked_query,
    readable_project,
    require_project_access,
    writable_project,
)

#: So many prompts with tags or a text are found; whoever needs more looks for something rarer.
MAX_MATCHES: Final = 1000


class PromptPage(Struct, frozen=True):
    """Some of the prompts that were asked for, and how many there are."""

    prompts: list[PromptSummary]
    total: int


class PromptEntries(Struct, frozen=True):
    """Some of the prompts that were chosen, and how many there are."""

    entries: list[PromptEntry]
    total: int
    #: Whether there are more than that, which nobody has counted.
    is_more: bool = False


class PromptChange(Struct, frozen=True, kw_only=True):
    """What to change of a prompt; what is unset stays."""

    name: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    tags: Sequence[str] | UnsetType = UNSET
    arguments: tuple[Argument, ...] | UnsetType = UNSET


class PromptAddress(Struct, frozen=True):
    """Which prompt is meant: by id, by name, or by whichever of name, id and title somebody remembers."""

    id: str | None = None
    name: str | None = None
    any: str | None = None

    async def find(self, transaction: Transaction, project: Project) -> Prompt:
        """Raises `PromptNotFound`."""
        found = await self.lookup(transaction, project.id)
        if found is None:
            raise PromptNotFound(self.any or self.id or self.name or "", project.name)
        return found

    async def lookup(self, transaction: Transaction, project: int) -> Prompt | None:
        """The prompt, if there is one."""
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
    """Create, find, list, change and delete prompts."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)

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
        """Store a new prompt with a name or a title; what is not given is made from the other."""
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

        async def work(transaction: Transaction) -> tuple[Prompt, Project]:
            project = await writable_project(transaction, caller)
            prompt = Prompt(
                number=0,
                id=transaction.new_id(),
                project=project.id,
                name=await _free_name(transaction, project, name, title),
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
        # What is not there needs a second look: perhaps all of its project is gone.
        found = None if address.any is not None else await self._store.read(caller, lookup, single=True)
        return await self._store.read(caller, work) if found is None else found

    async def update(
        self, caller: Caller, address: PromptAddress, change: PromptChange, *, version: int | None = None
    ) -> tuple[Prompt, Project]:
        """Change what is given; with `version`, only if it has not been changed since it had that one."""
        given: dict[str, Any] = {
            name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not UNSET
        }
        require(problems(**given))
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
            is_template = changed.arguments and not given.keys().isdisjoint(("content", "arguments"))
            if is_template and (problem := template_problem(changed.content)):
                raise Invalid([Problem("content", problem)])
            await transaction.write("update", prompt, changed)
            return changed, project

        return await self._store.write(caller, work)

    async def delete(self, caller: Caller, address: PromptAddress) -> tuple[Prompt, Project]:
        async def work(transaction: Transaction) -> tuple[Prompt, Project]:
            project = await writable_project(transaction, caller)
            prompt = await address.find(transaction, project)
            await transaction.write("delete", prompt, None)
            return prompt, project

        return await self._store.write(caller, work)

    async def delete_all(self, caller: Caller, addresses: Sequence[PromptAddress]) -> list[Prompt]:
        """Delete prompts, all of them or, if one is missing, none."""

        async def work(transaction: Transaction) -> list[Prompt]:
            project = await writable_project(transaction, caller)
            found = [await address.find(transaction, project) for address in addresses]
            gone = list({prompt.id: prompt for prompt in found}.values())
            for prompt in gone:
                await transaction.write("delete", prompt, None)
            return gone

        return await self._store.write(caller, work)

    async def names(self, caller: Caller, limit: int) -> list[str]:
        """In alphabetical order."""

        async def work(transaction: Transaction) -> list[str]:
            await readable_project(transaction, caller)
            return await transaction.prompts.names(caller.project, limit)

        return await self._store.read(caller, work)

    async def listing(self, caller: Caller, after: int, limit: int) -> list[PromptListing]:
        """In the order of creation."""

        async def work(transaction: Transaction) -> list[PromptListing]:
            await readable_project(transaction, caller)
            return await transaction.prompts.listing(caller.project, after, limit)

        return await self._store.read(caller, work)

    async def recent(self, caller: Caller, limit: int, offset: int) -> PromptPage:
        """Those updated last come first."""

        async def work(transaction: Transaction) -> PromptPage:
            await readable_project(transaction, caller)
            found = await transaction.prompts.recent(caller.project, limit, offset)
            return PromptPage(found, await transaction.prompts.count(caller.project))

        return await self._store.read(caller, work)

    async def search(
        self, caller: Caller, query: str, limit: int, offset: int, tags: Sequence[str] = ()
    ) -> PromptPage:
        """Those with `query` in title or content, in any case; all, if it is empty.

        With `tags`, only those that carry any of them.
        """
        wanted = normalise_tags(tags)
        if not checked_query(query):
            if wanted:
                return (await self.by_tags(caller, wanted, limit, offset))[0]
            return await self.recent(caller, limit, offset)

        async def work(transaction: Transaction) -> PromptPage:
            await readable_project(transaction, caller)
            total, found = await transaction.prompts.search(caller.project, query, limit, offset, wanted)
            return PromptPage(found, total)

        return await self._store.read(caller, work, slow=True)

    async def by_tags(
        self, caller: Caller, tags: Sequence[str], limit: int, offset: int
    ) -> tuple[PromptPage, list[str]]:
        """Those that carry any of the tags, and which of the tags anyone carries."""
        wanted = normalise_tags(tags)

        async def work(transaction: Transaction) -> tuple[PromptPage, list[str]]:
            await readable_project(transaction, caller)
            total, found = await transaction.prompts.by_tags(caller.project, wanted, limit, offset)
            carried = await transaction.prompts.existing_tags(caller.project, wanted)
            return PromptPage(found, total), carried

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
        """Those that carry all of `tags` and have `query` in title or content, in any case."""
        wanted = normalise_tags(tags)[:MAX_TAGS]
        checked_query(query)

        async def work(transaction: Transaction) -> PromptEntries:
            await readable_project(transaction, caller)
            total, found = await transaction.prompts.filter(
                caller.project,
                query=query,
                tags=wanted,
                order=order,
                limit=limit,
                offset=offset,
                max_matches=MAX_MATCHES + 1,
            )
            if (query or wanted) and total > MAX_MATCHES:
                return PromptEntries(found[: max(MAX_MATCHES - offset, 0)], MAX_MATCHES, is_more=True)
            return PromptEntries(found, total)

        return await self._store.read(caller, work, slow=bool(query or wanted))

    async def tags(self, caller: Caller) -> list[TagCount]:
        """The tags in use, the most used first."""

        async def work(transaction: Transaction) -> list[TagCount]:
            await readable_project(transaction, caller)
            return await transaction.prompts.tags_in_use(caller.project)

        return await self._store.read(caller, work)

    async def retag(
        self, caller: Caller, address: PromptAddress, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> tuple[Prompt, bool]:
        """Add tags to a prompt and take some away; the prompt, and whether it had to be changed."""
        require(problems(tags=add))
        removed = normalise_tags(remove)

        async def work(transaction: Transaction) -> tuple[Prompt, bool]:
            prompt = await address.find(transaction, await writable_project(transaction, caller))
            kept = [tag for tag in prompt.tags if tag not in removed]
            tags = normalise_tags([*kept, *add])
            require(problems(tags=tags))
            if tags == prompt.tags:
                return prompt, False
            return await _with_tags(transaction, prompt, tags), True

        return await self._store.write(caller, work)

    async def rename_tag(self, caller: Caller, old: str, new: str) -> list[str]:
        """Give a tag another name on every prompt of the project, all at once.

        The names of those prompts; nothing, if none has the tag.
        """
        require(problems(tags=[new]))
        (old,), (new,) = normalise_tags([old]), normalise_tags([new])

        async def work(transaction: Transaction) -> list[str]:
            project = await writable_project(transaction, caller)
            names = []
            for found in await transaction.prompts.ids_with_tag(project.id, old):
                # One at a time: all of them might not fit into memory.
                prompt = await PromptAddress(id=found).find(transaction, project)
                tags = normalise_tags(new if tag == old else tag for tag in prompt.tags)
                if tags != prompt.tags:
                    await _with_tags(transaction, prompt, tags)
                names.append(prompt.name)
            return names

        return await self._store.write(caller, work)


async def _with_tags(transaction: Transaction, prompt: Prompt, tags: tuple[str, ...]) -> Prompt:
    changed = replace(prompt, tags=tags, updated_at=transaction.now, version=prompt.version + 1)
    await transaction.write("update", prompt, changed)
    return changed


async def _free_name(transaction: Transaction, project: Project, name: str | None, title: str | None) -> str:
    if name is not None:
        if await transaction.prompts.name_taken(project.id, name):
            raise NameTaken("prompt", name, project.name)
        return name
    for candidate in numbered_names(name_from_title(title or ""), "-{}", NAME_LENGTH):
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
