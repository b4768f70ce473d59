"""Use cases for prompts and tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from dittybag.domain.entities import ENTITY_TYPES
from dittybag.domain.errors import NotFound, PromptNotFound, require
from dittybag.domain.names import NAME_LENGTH, name_from_title, numbered_names
from dittybag.domain.ports import Store, TemplateSyntax, Transaction, Write
from dittybag.domain.projects import Project
from dittybag.domain.prompts import (
    MAX_TAGS,
    TITLE_LENGTH,
    Argument,
    Prompt,
    PromptListing,
    PromptSummary,
    TagCount,
    normalise_tags,
    problems,
)
from dittybag.domain.queries import DEEP_OFFSET, PromptQuery
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
    given_fields,
    is_taken,
    next_version,
    require_unique,
    require_version,
    update,
)

_PROMPT: Final = ENTITY_TYPES["prompt"]

#: Reading more tags than this takes about a millisecond.
_MANY_TAGS: Final = 1000


class PromptPage(Struct, frozen=True):
    """A page of prompts and the number of matches."""

    prompts: list[PromptSummary]
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


class PromptDraft(Struct, frozen=True):
    """A prompt to create. If only one of name and title is given, the other is derived from it."""

    name: str | None
    title: str | None
    #: The other fields, as they are stored.
    fields: dict[str, Any]
    #: The name, or what it is derived from.
    base_name: str


async def create_prompt(
    transaction: Transaction, caller: Caller, draft: PromptDraft
) -> tuple[Prompt, Project]:
    project = await existing_project(transaction, caller)
    names = [draft.name] if draft.name is not None else numbered_names(draft.base_name, "-{}", NAME_LENGTH)
    titles = (
        [draft.title] if draft.title is not None else numbered_names(draft.base_name, " ({})", TITLE_LENGTH)
    )
    prompt = Prompt(
        number=0,
        id=transaction.new_id(),
        project=project.id,
        name=await _first_free(transaction, project, "name", names),
        title=await _first_free(transaction, project, "title", titles),
        **draft.fields,
        created_at=transaction.now,
        updated_at=transaction.now,
    )
    return await create(transaction, prompt), project


async def _first_free(
    transaction: Transaction, project: Project, field: str, candidates: Iterable[str]
) -> str:
    """Return the first value that no prompt has. Raises a conflict if there is none."""
    for value in candidates:
        if not await is_taken(transaction, "prompt", project, field, value):
            return value
    raise _PROMPT.unique[field](value, project.name)


async def lookup_prompt(transaction: Transaction, caller: Caller, address: PromptAddress) -> Prompt | None:
    return await address.lookup(transaction, caller.project)


async def find_prompt(transaction: Transaction, caller: Caller, address: PromptAddress) -> Prompt:
    return await address.find(transaction, await readable_project(transaction, caller))


async def update_prompt(
    transaction: Transaction,
    caller: Caller,
    address: PromptAddress,
    fields: dict[str, Any],
    version: int | None,
) -> tuple[Prompt, Project]:
    """Change some fields. Raises `Outdated` if `version` is given and not the current version."""
    project = await writable_project(transaction, caller)
    prompt = await address.find(transaction, project)
    require_version(prompt, version)
    changed = next_version(prompt, transaction.now, **fields)
    await require_unique(transaction, prompt, changed, project)
    await transaction.write("update", prompt, changed)
    return changed, project


async def delete_prompt(
    transaction: Transaction, caller: Caller, address: PromptAddress
) -> tuple[Prompt, Project]:
    project = await writable_project(transaction, caller)
    prompt = await address.find(transaction, project)
    await transaction.write("delete", prompt, None)
    return prompt, project


async def delete_prompts(
    transaction: Transaction, caller: Caller, addresses: Sequence[PromptAddress]
) -> list[Prompt]:
    """Delete prompts: all of them or, if one does not exist, none."""
    project = await writable_project(transaction, caller)
    found = [await address.find(transaction, project) for address in addresses]
    return await delete_all(transaction, found)


async def prompt_names(transaction: Transaction, caller: Caller, limit: int) -> list[str]:
    """Return names in alphabetical order."""
    await readable_project(transaction, caller)
    return await transaction.prompts.names(caller.project, limit)


async def list_prompts(
    transaction: Transaction, caller: Caller, after: int, limit: int
) -> list[PromptListing]:
    """Return prompts in creation order, starting after number `after`."""
    await readable_project(transaction, caller)
    return await transaction.prompts.listing(caller.project, after, limit)


async def read_prompts(
    transaction: Transaction, caller: Caller, after: int, limit: int, max_bytes: int
) -> tuple[list[Prompt], bool]:
    """Return whole prompts in creation order, starting after number `after`, and whether there are more.

    At most `limit`, and as many as have `max_bytes` of content, but at least one.
    """
    await readable_project(transaction, caller)
    listed = await transaction.prompts.listing(caller.project, after, limit + 1)
    found: list[Prompt] = []
    for item in listed[:limit]:
        if found and max_bytes <= 0:
            return found, True
        prompt = await transaction.prompts.by_name(caller.project, item.name)
        if prompt is not None:
            found.append(prompt)
            max_bytes -= len(prompt.content.encode())
    return found, len(listed) > limit


async def page_prompts(transaction: Transaction, caller: Caller, query: PromptQuery) -> PromptPage:
    """Return prompts of the caller's project."""
    checked_query(query.text)
    await readable_project(transaction, caller)
    most = query.max_matches
    query = replace(
        query,
        project=caller.project,
        any_tag=normalise_tags(query.any_tag),
        all_tags=normalise_tags(query.all_tags)[:MAX_TAGS],
        max_matches=None if most is None else most + 1,
    )
    total, found = await transaction.prompts.page(query)
    if most is not None and total > most and (query.text or query.any_tag or query.all_tags):
        return PromptPage(found[: max(most - query.offset, 0)], most, is_more=True)
    return PromptPage(found, total)


async def prompts_by_tags(
    transaction: Transaction, caller: Caller, tags: Sequence[str], limit: int, offset: int
) -> tuple[PromptPage, list[str]]:
    """Return prompts with any of the tags, and those of the tags that are in use."""
    await readable_project(transaction, caller)
    if not (wanted := normalise_tags(tags)):
        return PromptPage([], 0), []
    query = PromptQuery(project=caller.project, any_tag=wanted, limit=limit, offset=offset)
    total, found = await transaction.prompts.page(query)
    return PromptPage(found, total), await transaction.prompts.existing_tags(caller.project, wanted)


async def list_tags(transaction: Transaction, caller: Caller) -> list[TagCount]:
    """Return the tags in use, most used first."""
    await readable_project(transaction, caller)
    return await transaction.prompts.tags_in_use(caller.project)


async def retag_prompts(
    transaction: Transaction,
    caller: Caller,
    addresses: Sequence[PromptAddress],
    *,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
) -> list[tuple[Prompt, bool]]:
    """Add and remove tags of prompts: of all of them or, if one does not exist, of none.

    Returns each prompt once, and whether it changed.
    """
    require(problems(tags=add))
    removed = normalise_tags(remove)
    project = await writable_project(transaction, caller)
    found = [await address.find(transaction, project) for address in addresses]
    before = list({prompt.id: prompt for prompt in found}.values())
    after = [_retagged(transaction, prompt, add, removed) for prompt in before]
    pairs = list(zip(before, after, strict=True))
    await transaction.write_all([Write("update", old, new) for old, new in pairs if old != new])
    return [(new, old != new) for old, new in pairs]


def _retagged(transaction: Transaction, prompt: Prompt, add: Sequence[str], removed: Sequence[str]) -> Prompt:
    """Return a prompt with other tags; the same if it has them already."""
    tags = normalise_tags([*(tag for tag in prompt.tags if tag not in removed), *add])
    require(problems(tags=tags))
    return prompt if tags == prompt.tags else next_version(prompt, transaction.now, tags=tags)


async def rename_tag(transaction: Transaction, caller: Caller, old: str, new: str) -> list[str]:
    """Rename a tag on every prompt of the project in one transaction.

    Returns the names of these prompts; empty if no prompt has the tag.
    """
    require(problems(tags=[new]))
    (old,), (new,) = normalise_tags([old]), normalise_tags([new])
    project = await writable_project(transaction, caller)
    names = []
    for found in await transaction.prompts.ids_with_tag(project.id, old):
        # One at a time: all prompts might not fit into memory.
        prompt = await PromptAddress(id=found).find(transaction, project)
        tags = normalise_tags(new if tag == old else tag for tag in prompt.tags)
        if tags != prompt.tags:
            await update(transaction, prompt, tags=tags)
        names.append(prompt.name)
    return names


class PromptService:
    """Creates, finds, lists, changes and deletes prompts."""

    def __init__(self, store: Store, syntax: TemplateSyntax | None = None) -> None:
        self._store = ScopedStore(store)
        self._syntax = syntax
        self._has_many_tags = False

    delete = writing(delete_prompt, checked=True)
    delete_all = writing(delete_prompts, checked=True)
    names = reading(prompt_names)
    listing = reading(list_prompts)
    contents = reading(read_prompts, slow=True)
    retag_all = writing(retag_prompts, checked=True)
    rename_tag = writing(rename_tag)

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
        others: dict[str, Any] = {
            "content": content,
            "description": description,
            "tags": tags,
            "arguments": tuple(arguments),
        }
        require(problems(name=name, title=title, **others))
        if arguments:
            await require_syntax(self._syntax, caller, content)
        base_name = name_from_title(title or "") if name is None else name
        draft = PromptDraft(name, title, _PROMPT.normalise(others), base_name)
        return await self._store.write(caller, create_prompt, draft, checked=True)

    async def get(self, caller: Caller, address: PromptAddress) -> Prompt:
        require_project_access(caller)
        found = None
        if address.any is None:
            found = await self._store.read(caller, lookup_prompt, address, single=True)
        # If the prompt is missing, a second query finds out whether its project is missing too.
        return await self._store.read(caller, find_prompt, address) if found is None else found

    async def update(
        self, caller: Caller, address: PromptAddress, change: PromptChange, *, version: int | None = None
    ) -> tuple[Prompt, Project]:
        """See `update_prompt`."""
        fields = given_fields(change)
        require(problems(**fields))
        await self._require_syntax(caller, address, change)
        stored = _PROMPT.normalise(fields)
        return await self._store.write(caller, update_prompt, address, stored, version, checked=True)

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

    async def move_all(
        self, caller: Caller, addresses: Sequence[PromptAddress], project: str
    ) -> list[Prompt]:
        """See `move_prompts`."""
        # Imported here because few processes move anything.
        from dittybag.services.entity_moves import move_prompts

        return await writing(move_prompts)(self, caller, addresses, project)

    async def page(self, caller: Caller, query: PromptQuery) -> PromptPage:
        """See `page_prompts`."""
        is_slow = bool(query.text or query.all_tags) or query.offset > DEEP_OFFSET
        return await self._store.read(caller, page_prompts, query, slow=is_slow)

    async def by_tags(
        self, caller: Caller, tags: Sequence[str], limit: int, offset: int
    ) -> tuple[PromptPage, list[str]]:
        """See `prompts_by_tags`."""
        # The number of prompts with one tag is kept; those with any of several are counted.
        is_slow = len(tags) > 1 or offset > DEEP_OFFSET
        return await self._store.read(caller, prompts_by_tags, tags, limit, offset, slow=is_slow)

    async def tags(self, caller: Caller) -> list[TagCount]:
        """See `list_tags`."""
        # A long list was long the last time, too, except for the first time.
        found = await self._store.read(caller, list_tags, slow=self._has_many_tags)
        self._has_many_tags = len(found) > _MANY_TAGS
        return found
