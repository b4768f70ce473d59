"""References: one way to name a prompt, a library prompt, a resource, a task or a change in any tool.

A reference is a name, `library:prompt`, a URI, `task:12`, a UUID or `change:15`. `prompt:NAME`,
`resource:NAME` and `library:LIBRARY:PROMPT` say which of several things with one name is meant.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Final, TypeVar

from msgspec import Meta, Struct

from dittybag.contracts.tool_specs import ToolCall
from dittybag.domain.entities import Kind, key_of, kind_of
from dittybag.domain.errors import (
    AmbiguousReference,
    Invalid,
    NotFound,
    Problem,
    ProjectNotFound,
    PromptNotFound,
    ReferenceNotFound,
    ResourceNotFound,
    TaskNotFound,
    checked,
    clip,
)
from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.resources import URI_LENGTH, Resource
from dittybag.domain.tasks import Task
from dittybag.domain.text import near_matches
from dittybag.services.prompt_service import PromptAddress
from dittybag.services.search_service import RankedQuery

T = TypeVar("T")

#: A reference as an argument.
Ref = Annotated[str, Meta(min_length=1)]

#: Compiled on first use, to start faster.
_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_UUID_LENGTH: Final = 36
#: Databases do not accept larger numbers.
_NUMBER: Final = r"(?:(task|change):)?([0-9]{1,18})"
#: Resources with longer URIs are referred to by their names.
_SHORT_URI: Final = 300
#: Longer references name nothing.
_MAX_LENGTH: Final = URI_LENGTH + 100
#: Names of each kind that are compared with a reference that names nothing.
_COMPARED: Final = 1000
_MAX_NEAR: Final = 3
#: Characters of a reference that names nothing which are searched for.
_SEARCHED: Final = 60
#: Changes that are read to find out what had a name.
_READ_CHANGES: Final = 50


class ChangeNumber(Struct, frozen=True):
    """A reference to a change."""

    seq: int


Item = Prompt | LibraryPrompt | Resource | Task


def ref_of(item: Item) -> str:
    """Return the shortest reference to an item."""
    if isinstance(item, Task):
        return f"task:{item.id}"
    if isinstance(item, Resource) and len(item.uri) <= _SHORT_URI:
        return item.uri
    return explicit_ref(item) if isinstance(item, Resource) else item.name


def explicit_ref(item: Item) -> str:
    """Return a reference to an item that says what kind of item it is."""
    if isinstance(item, Task):
        return ref_of(item)
    if isinstance(item, LibraryPrompt):
        return f"library:{item.name}"
    return f"{'prompt' if isinstance(item, Prompt) else 'resource'}:{item.name}"


def kind_of_item(item: Item) -> str:
    """Return the kind of an item, as `search` calls it."""
    return "library_prompt" if isinstance(item, LibraryPrompt) else kind_of(item)


async def find_item(call: ToolCall, ref: str, wanted: tuple[type[Item], ...] = ()) -> Item | ChangeNumber:
    """Return what a reference names. Raises `AmbiguousReference` and `ReferenceNotFound`.

    `wanted`: the kinds that the caller can use; others are returned only if nothing of these kinds fits.
    """
    found = await look_up_item(call, ref, wanted)
    if found is None:
        raise await missing_item(call, ref)
    return found


async def look_up_item(
    call: ToolCall, ref: str, wanted: tuple[type[Item], ...] = ()
) -> Item | ChangeNumber | None:
    """Like `find_item`, but return `None` if the reference names nothing."""
    ref = checked_ref(ref)
    if ref.startswith("change:") and (numbered := re.fullmatch(_NUMBER, ref)):
        return ChangeNumber(int(numbered[2]))
    found = await _find_by_prefix(call, ref)
    if not found and wanted:
        found = await _find_all(call, ref, wanted)
    found = found or await _find_all(call, ref, tuple(_LOOKUPS)) or await _find_by_title(call, ref)
    if len(found) > 1:
        raise AmbiguousReference(ref, [explicit_ref(item) for item in found])
    return found[0] if found else None


async def missing_item(call: ToolCall, ref: str) -> ReferenceNotFound:
    """Return the error for a reference that names nothing."""
    ref = checked_ref(ref)
    return ReferenceNotFound(ref, await _near(call, ref))


def checked_ref(ref: str) -> str:
    """Return a reference without white space around it. Raises `Invalid` for a text that cannot be one."""
    ref = ref.strip()
    problem = None if 0 < len(ref) <= _MAX_LENGTH and "\0" not in ref else _NOT_A_REF
    return checked("ref", ref, problem)


_NOT_A_REF: Final = "ref must be a name, library:prompt, URI, task:12, UUID or change:15"


async def _find_by_prefix(call: ToolCall, ref: str) -> list[Item]:
    """Return what a reference with the prefix of a kind names."""
    prefix, _, rest = ref.partition(":")
    look_up = _BY_PREFIX.get(prefix)
    return [] if look_up is None or not rest else await look_up(call, rest)


async def _find_all(call: ToolCall, ref: str, kinds: tuple[type[Item], ...]) -> list[Item]:
    """Return everything of these kinds that a reference may name."""
    return [item for kind in kinds for item in await _LOOKUPS[kind](call, ref)]


async def _find_by_title(call: ToolCall, ref: str) -> list[Item]:
    return await _attempt(call.workspace.prompts.get(call.caller, PromptAddress(any=ref)), PromptNotFound)


async def _prompts(call: ToolCall, ref: str) -> list[Item]:
    address = PromptAddress(id=ref) if _is_uuid(ref) else PromptAddress(name=ref)
    return await _attempt(call.workspace.prompts.get(call.caller, address), PromptNotFound)


async def _resources(call: ToolCall, ref: str) -> list[Item]:
    if _is_uuid(ref):
        return await _attempt(call.workspace.resources.by_id(call.caller, ref.lower()), ResourceNotFound)
    found = await call.workspace.resources.look_up(call.caller, ref)
    return [] if found is None else [found]


def _is_uuid(ref: str) -> bool:
    return len(ref) == _UUID_LENGTH and re.fullmatch(_UUID, ref) is not None


async def _library_prompts(call: ToolCall, name: str) -> list[Item]:
    if ":" not in name:
        return []
    found = await call.scope.libraries.find(name)
    return [] if found is None else [found]


async def _tasks(call: ToolCall, number: str) -> list[Item]:
    if not (number.isascii() and number.isdigit() and re.fullmatch(_NUMBER, number)):
        return []
    return await _attempt(call.workspace.tasks.get(call.caller, int(number)), TaskNotFound)


_LookUp = Callable[[ToolCall, str], Awaitable[list[Item]]]
_LOOKUPS: Final[dict[type[Item], _LookUp]] = {
    Prompt: _prompts,
    Resource: _resources,
    LibraryPrompt: _library_prompts,
    Task: _tasks,
}
_BY_PREFIX: Final[dict[str, _LookUp]] = {
    "task": _tasks,
    "prompt": _prompts,
    "resource": _resources,
    "library": _library_prompts,
}


async def _attempt(found: Awaitable[Item], missing: type[NotFound]) -> list[Item]:
    try:
        return [await found]
    except missing:
        return []


async def _near(call: ToolCall, ref: str) -> list[str]:
    """Return references that are spelled like one that names nothing, or whose items have its words."""
    if re.fullmatch(_NUMBER, ref) or re.fullmatch(_UUID, ref):
        return []
    names = await call.workspace.prompts.names(call.caller, _COMPARED)
    uris = await call.workspace.resources.uris(call.caller, "", _COMPARED)
    library = [prompt.name for prompt in await call.scope.libraries.page("", _COMPARED)]
    near = near_matches(ref, [*names, *uris, *library], _MAX_NEAR)
    if near:
        return near
    found = await call.workspace.search.ranked(call.caller, RankedQuery(ref[:_SEARCHED], limit=_MAX_NEAR))
    return [hit.ref for hit in found.hits if len(hit.ref) <= _SHORT_URI]


# Tasks and projects


async def find_task(call: ToolCall, ref: str) -> Task:
    """Return the task that a reference names. Raises `Invalid`, `AmbiguousReference`, `ReferenceNotFound`."""
    task = await find_item(call, ref, (Task,))
    if not isinstance(task, Task):
        raise Invalid([Problem("ref", f"ref '{clip(ref)}' is not a task")])
    return task


def task_number(ref: str) -> int | None:
    """Return the number of a task that is named as `task:12` or `12`; `None` if it is named otherwise."""
    found = re.fullmatch(_NUMBER, ref.strip()) if ref.isascii() else None
    return None if found is None or found[1] == "change" else int(found[2])


async def require_projects(call: ToolCall, names: Iterable[str]) -> None:
    """Raise `ProjectNotFound`, with similar names, for a project that the caller cannot see."""
    for name in names:
        try:
            await call.workspace.projects.find_visible(call.caller, name)
        except ProjectNotFound:
            known = await call.workspace.projects.names("", _COMPARED, call.caller)
            raise ProjectNotFound(name, near_matches(name, known, _MAX_NEAR)) from None


# Entities that may be deleted


class LoggedEntity(Struct, frozen=True):
    """An entity as the change log names it."""

    kind: Kind
    id: str


async def find_logged_entity(call: ToolCall, ref: str) -> LoggedEntity:
    """Return the entity that a reference names or, if nothing has this name, named last.

    Raises `AmbiguousReference` and `ReferenceNotFound`.
    """
    ref = checked_ref(ref)
    if (numbered := re.fullmatch(_NUMBER, ref)) and numbered[1] == "task":
        return LoggedEntity("task", str(int(numbered[2])))
    item = await look_up_item(call, ref)
    if item is None:
        found = await _changes_of(call, ref)
        if not found:
            raise await missing_item(call, ref)
        return found[0]
    if isinstance(item, ChangeNumber | LibraryPrompt):
        raise ReferenceNotFound(ref)
    return LoggedEntity(kind_of(item), key_of(item))


async def _changes_of(call: ToolCall, ref: str) -> list[LoggedEntity]:
    """Return the entities that had a name, URI or id, the last changed first."""
    prefix, _, rest = ref.partition(":")
    kind = _LOGGED_KINDS.get(prefix)
    name = ref if kind is None else rest
    by_id = name.lower() if re.fullmatch(_UUID, name) else None
    query = ChangeQuery(
        project=call.caller.project,
        kind=kind,
        entity=by_id,
        name=None if by_id else name,
        limit=_READ_CHANGES,
    )
    changes = await call.workspace.history.page(call.caller, query)
    return list(dict.fromkeys(LoggedEntity(change.kind, change.entity) for change in changes))


_LOGGED_KINDS: Final[dict[str, Kind]] = {"prompt": "prompt", "resource": "resource"}
