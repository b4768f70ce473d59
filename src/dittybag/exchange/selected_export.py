"""Export of selected entities as one JSON file, in the format of `dittybag export`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from dittybag.domain.entities import ENTITY_TYPES, kind_of, project_of
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.exchange.json_file import JsonWriter


def export_selected(
    projects: Iterable[Project], entities: Sequence[tuple[Prompt | Resource | Task, bytes | None]]
) -> bytes:
    """Return the file. `projects`: those that the entities may belong to; each entity with its content.

    A task without its project in `projects` is no longer shared, and names only tasks that are selected too.
    """
    known = {project.id: project for project in projects}
    tasks = {entity.id for entity, _ in entities if isinstance(entity, Task)}
    selected = [(_without_others(entity, known, tasks), content) for entity, content in entities]
    used = {project_of(entity) for entity, _ in selected}
    parts: list[bytes] = []
    writer = JsonWriter(parts.append, project=None)
    for project in known.values():
        if project.id in used:
            writer.entity(project)
    for kind in ENTITY_TYPES:
        for entity, content in selected:
            if kind_of(entity) == kind:
                writer.entity(entity, content)
    writer.finish()
    return b"".join(parts)


def _without_others(
    entity: Prompt | Resource | Task, known: dict[int, Project], tasks: set[int]
) -> Prompt | Resource | Task:
    """Return an entity without references to projects and tasks that are not exported."""
    if not isinstance(entity, Task):
        return entity
    return replace(
        entity,
        project_id=entity.project_id if entity.project_id in known else None,
        blocked_by=tuple(task for task in entity.blocked_by if task in tasks),
        parent=entity.parent if entity.parent in tasks else None,
    )
