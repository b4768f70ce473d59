"""Use cases that move prompts and resources to another project.

A moved entity gets a new id and starts a new history, because members of the new project may not be allowed
to see the old one. Both changes are in one batch, so an undo moves it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from dittybag.domain.errors import Invalid, NotAllowed, Problem
from dittybag.domain.ports import Transaction, Write
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.services.caller import Caller, writable_project
from dittybag.services.entity_writes import require_unique
from dittybag.services.project_service import find_visible_project
from dittybag.services.prompt_service import PromptAddress
from dittybag.services.resource_service import find_resources


async def move_prompts(
    transaction: Transaction, caller: Caller, addresses: Sequence[PromptAddress], project: str
) -> list[Prompt]:
    """Move prompts to a project: all of them or, if one does not exist or its name is taken there, none."""
    source = await writable_project(transaction, caller)
    target = await _target(transaction, caller, source, project)
    return await _move(transaction, [await item.find(transaction, source) for item in addresses], target)


async def move_resources(
    transaction: Transaction, caller: Caller, references: Sequence[str], project: str
) -> list[Resource]:
    """Move resources, by name or URI, to a project: all of them or none, like `move_prompts`."""
    source = await writable_project(transaction, caller)
    target = await _target(transaction, caller, source, project)
    return await _move(transaction, await find_resources(transaction, source, references), target)


async def _target(transaction: Transaction, caller: Caller, source: Project, name: str) -> Project:
    """Return another project that the caller may change. Raises an error if there is none of this name."""
    target = await find_visible_project(transaction, caller, name)
    if target.id == source.id:
        raise Invalid([Problem("project", f"They are in project '{name}' already; choose another one")])
    if caller.principal is not None:
        locked = await transaction.accounts.projects_locked_for(caller.user)
        if target.id in locked:
            raise NotAllowed(f"You can read project '{name}', but not change it")
    return target


async def _move(transaction: Transaction, found: Sequence[Any], target: Project) -> list[Any]:
    entities = list({entity.id: entity for entity in found}.values())
    moved = [
        replace(
            entity,
            number=0,
            id=transaction.new_id(),
            project=target.id,
            updated_at=transaction.now,
            version=1,
        )
        for entity in entities
    ]
    for entity in moved:
        await require_unique(transaction, None, entity, target)
    creations = [Write("create", None, entity) for entity in moved]
    deletions = [Write("delete", entity, None) for entity in entities]
    # An undo starts with the last change, so the first change of an undo belongs to the old project, too.
    return (await transaction.write_all([*creations, *deletions]))[: len(creations)]
