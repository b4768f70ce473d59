"""A task with what belongs to it: its claim, its parts, what it waits for and what waits for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from dittybag.domain.changes import Interface
from dittybag.domain.claims import Claim
from dittybag.domain.entities import Kind
from dittybag.domain.ports import Transaction
from dittybag.domain.task_graph import GraphQuery, GraphTask
from dittybag.domain.tasks import Task
from dittybag.services.caller import Caller
from dittybag.services.task_access import find_task, locked_projects, visible_view

#: Maximum number of related tasks.
_MAX_RELATED: Final = 500


class TaskParts(Struct, frozen=True):
    """The number of parts of a task, and how many of them are done or dropped."""

    total: int = 0
    ended: int = 0


class LinkedEntity(Struct, frozen=True):
    """A prompt or resource that a link of a task names."""

    kind: Kind
    #: The name of its project.
    project: str
    #: The id of a prompt, the URI of a resource.
    address: str


class TaskDetails(Struct, frozen=True, kw_only=True):
    """A task and what belongs to it, as far as the caller can see it."""

    task: Task
    #: Whether the caller may change it.
    writable: bool
    #: Who holds it, or held it until the claim lapsed.
    last_claim: Claim | None = None
    #: The same, but `None` if it has lapsed.
    claim: Claim | None = None
    #: How the holder claimed it; `None` if it is not known.
    claimed_via: Interface | None = None
    parent: GraphTask | None = None
    #: Those of the parent, this task included.
    siblings: TaskParts = TaskParts()
    #: The tasks that it is blocked by, done ones included.
    blockers: list[GraphTask] = []
    #: The tasks that are blocked by it.
    blocked: list[GraphTask] = []
    parts: list[GraphTask] = []
    part_counts: TaskParts = TaskParts()
    #: The number of open tasks that it waits for, its parts included.
    waits_for: int = 0
    #: The prompts and resources among its links.
    linked: dict[str, LinkedEntity] = {}


async def task_details(transaction: Transaction, caller: Caller, id: int) -> TaskDetails:
    """Return a task and what belongs to it. Raises `TaskNotFound`."""
    task = await find_task(transaction, caller, id)
    before = [other for _, other in await transaction.edges.blockers([id])]
    after = [other for _, other in await transaction.edges.blocked([id])]
    related = await _related(transaction, caller, [*task.blocked_by, task.parent or 0, *after, *before])
    claim = await transaction.claims.get(id)
    change = None if claim is None else await transaction.changes.get(claim.fence)
    parent = related.get(task.parent or 0)
    may_write = caller.principal is None or caller.principal.changes_own
    return TaskDetails(
        task=task,
        writable=may_write and task.project_id not in await locked_projects(transaction, caller),
        last_claim=claim,
        claim=claim if claim is not None and claim.is_live(transaction.now) else None,
        claimed_via=None if change is None else change.interface,
        parent=parent,
        siblings=TaskParts() if parent is None else TaskParts(*await transaction.edges.parts(parent.id)),
        blockers=[related[other] for other in task.blocked_by if other in related],
        blocked=[related[other] for other in after if other in related and id in related[other].blocked_by],
        parts=[related[other] for other in before if other in related and related[other].parent == id],
        part_counts=TaskParts(*await transaction.edges.parts(id)),
        waits_for=(await transaction.edges.waiting([id])).get(id, 0),
        linked=await _linked(transaction, caller, task),
    )


async def _related(transaction: Transaction, caller: Caller, ids: Iterable[int]) -> dict[int, GraphTask]:
    wanted = tuple(dict.fromkeys(ids))[:_MAX_RELATED]
    view = await visible_view(transaction, caller)
    _, found = await transaction.edges.graph(GraphQuery(user=caller.user, view=view, ids=wanted, ended=True))
    return {task.id: task for task in found}


async def _linked(transaction: Transaction, caller: Caller, task: Task) -> dict[str, LinkedEntity]:
    """Return the entities that the links name, in the task's project or else in the caller's."""
    sees_own = caller.principal is None or caller.principal.sees_project
    number = task.project_id or (caller.project if sees_own else 0)
    project = await transaction.projects.get(number) if task.links and number else None
    if project is None:
        return {}
    found: dict[str, LinkedEntity] = {}
    for link in task.links:
        if (prompt := await transaction.prompts.by_name(number, link)) is not None:
            found[link] = LinkedEntity("prompt", project.name, prompt.id)
        elif await transaction.resources.by_uri(number, link) is not None:
            found[link] = LinkedEntity("resource", project.name, link)
    return found
