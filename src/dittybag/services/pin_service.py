"""Use cases for pins: which items the context packs of a project always have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct

from dittybag.domain.errors import AmbiguousReference, ReferenceNotFound, checked
from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.pins import PinKind, pin_of, pins_problem, split_pin
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.services.caller import Caller, ScopedStore, existing_project, readable_project, reading, writing
from dittybag.services.entity_writes import update
from dittybag.services.prompt_service import PromptAddress
from dittybag.services.task_access import find_task_or_none

PinnedEntity = Prompt | Resource | Task


class PinnedItem(Struct, frozen=True):
    """An item that is pinned to a project."""

    #: As the project has it.
    pin: str
    kind: PinKind
    #: What other commands and tools call it.
    ref: str
    #: `None` for a library prompt, and for an item that no longer exists or that the caller cannot see.
    title: str | None


async def find_pinned(
    transaction: Transaction, caller: Caller, project: Project, pin: str
) -> PinnedEntity | None:
    """Return a pinned entity; `None` if it no longer exists, or if the caller cannot see it."""
    kind, key = split_pin(pin)
    if kind == "prompt":
        return await transaction.prompts.by_id(project.id, key)
    if kind == "resource":
        found: Resource | None = await transaction.find("resource", id=key)
        return found if found is not None and found.project == project.id else None
    return await find_task_or_none(transaction, caller, int(key)) if kind == "task" else None


async def list_pins(transaction: Transaction, caller: Caller) -> list[PinnedItem]:
    """Return what is pinned to the caller's project, in order."""
    project = await readable_project(transaction, caller)
    return [_item(pin, await find_pinned(transaction, caller, project, pin)) for pin in project.pins]


async def _add(
    transaction: Transaction, caller: Caller, reference: str, library: LibraryPrompt | None
) -> tuple[PinnedItem, bool]:
    project = await existing_project(transaction, caller)
    item = await _find_item(transaction, caller, project, reference, library)
    if item.pin in project.pins:
        return item, False
    pins = checked("ref", (*project.pins, item.pin), pins_problem((*project.pins, item.pin)))
    await update(transaction, project, pins=pins)
    return item, True


async def _remove(
    transaction: Transaction, caller: Caller, reference: str, library: LibraryPrompt | None
) -> tuple[PinnedItem, bool]:
    project = await existing_project(transaction, caller)
    if reference in project.pins:
        # Also for an item that no longer exists.
        item = _item(reference, await find_pinned(transaction, caller, project, reference))
    else:
        item = await _find_item(transaction, caller, project, reference, library)
    if item.pin not in project.pins:
        return item, False
    await update(transaction, project, pins=tuple(pin for pin in project.pins if pin != item.pin))
    return item, True


async def _find_item(
    transaction: Transaction, caller: Caller, project: Project, reference: str, library: LibraryPrompt | None
) -> PinnedItem:
    """Return what a reference names. Raises `AmbiguousReference` and `ReferenceNotFound`."""
    prefix, colon, rest = reference.partition(":")
    kinds = [kind for kind in _LOOKUPS if colon and kind == prefix]
    found = [await _LOOKUPS[kind](transaction, caller, project, rest) for kind in kinds]
    if not any(found):
        found = [await look_up(transaction, caller, project, reference) for look_up in _LOOKUPS.values()]
    items = [_item(_pin_of(entity), entity) for entity in found if entity is not None]
    if library is not None and not (kinds and items):
        items.append(_item(pin_of("library", library.name), None))
    if len(items) > 1:
        raise AmbiguousReference(reference, [item.pin for item in items])
    if not items:
        raise ReferenceNotFound(reference)
    return items[0]


async def _prompt(
    transaction: Transaction, caller: Caller, project: Project, name: str
) -> PinnedEntity | None:
    return await PromptAddress(any=name).lookup(transaction, project.id)


async def _resource(
    transaction: Transaction, caller: Caller, project: Project, name: str
) -> PinnedEntity | None:
    found: Resource | None = await transaction.resources.by_name(project.id, name)
    found = found or await transaction.resources.by_uri(project.id, name)
    return found or await transaction.find("resource", id=name.lower(), project=project.id)


async def _task(
    transaction: Transaction, caller: Caller, project: Project, number: str
) -> PinnedEntity | None:
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        return None
    return await find_task_or_none(transaction, caller, int(number))


_LookUp = Callable[[Transaction, Caller, Project, str], Awaitable[PinnedEntity | None]]
_LOOKUPS: dict[PinKind, _LookUp] = {"prompt": _prompt, "resource": _resource, "task": _task}


def _pin_of(entity: PinnedEntity) -> str:
    if isinstance(entity, Prompt):
        return pin_of("prompt", entity.id)
    return pin_of("resource" if isinstance(entity, Resource) else "task", entity.id)


def _item(pin: str, entity: PinnedEntity | None) -> PinnedItem:
    kind, key = split_pin(pin)
    if entity is None:
        return PinnedItem(pin, kind, key if kind == "library" else pin, None)
    if isinstance(entity, Prompt):
        return PinnedItem(pin, kind, entity.name, entity.label)
    if isinstance(entity, Resource):
        return PinnedItem(pin, kind, entity.uri, entity.title or entity.name)
    return PinnedItem(pin, kind, pin, entity.title)


class PinService:
    """Pins items to projects, and lists them. A pin is a part of its project, so the change log has it."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)

    all = reading(list_pins)
    #: Each returns the item, and whether this has changed anything. `library`: the library prompt that the
    #: reference names, if there is one.
    add = writing(_add)
    remove = writing(_remove)
