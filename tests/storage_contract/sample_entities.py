"""Sample entities of every kind, created, changed and deleted below the services."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dittybag.domain.entities import Entity, Kind
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import DEFAULT_USER, Task

KINDS: tuple[Kind, ...] = ("project", "prompt", "resource", "task")


async def create_entity(transaction: Transaction, kind: Kind, project: int, label: str) -> Any:
    """Create an entity with the name or title `label` and return it as stored."""
    times: dict[str, Any] = {"created_at": transaction.now, "updated_at": transaction.now}
    entity: Entity
    if kind == "project":
        entity = Project(id=0, name=label, **times)
    elif kind == "task":
        entity = Task(id=0, user=DEFAULT_USER, title=label, **times)
    elif kind == "prompt":
        entity = Prompt(
            number=0,
            id=transaction.new_id(),
            project=project,
            name=label,
            title=label,
            content=label,
            tags=("a", label.lower()),
            **times,
        )
    else:
        digest = await transaction.store_content(label.encode())
        entity = Resource(
            number=0,
            id=transaction.new_id(),
            project=project,
            name=label,
            uri=f"x:{label}",
            mime_type="text/plain",
            sha256=digest,
            size=len(label.encode()),
            **times,
        )
    return await transaction.write("create", None, entity)


async def change(transaction: Transaction, entity: Any, label: str) -> Any:
    """Change the name or title of an entity and return it as stored."""
    field = "title" if isinstance(entity, Prompt | Task) else "name"
    changed = replace(entity, **{field: label}, updated_at=transaction.now, version=entity.version + 1)
    return await transaction.write("update", entity, changed)


async def delete(transaction: Transaction, entity: Any, label: str = "") -> Any:
    return await transaction.write("delete", entity, None)
