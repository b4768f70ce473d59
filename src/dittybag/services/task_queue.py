"""Use cases for the queue of ready tasks: claim, renew, release and finish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.claims import DEFAULT_LEASE, MAX_LEASE, MICROSECONDS, MIN_LEASE, Claim, ReadyQuery
from dittybag.domain.errors import (
    Invalid,
    NotAllowed,
    Problem,
    ProjectNotFound,
    TaskClaimed,
    TaskNotReady,
    clip,
)
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.tasks import ASSIGNEE_LENGTH, ENDED, Task, TaskStatus
from dittybag.services.caller import Caller, ScopedStore, reading, require_write_scope, writing
from dittybag.services.entity_writes import update
from dittybag.services.lost_claims import unclaimed_task
from dittybag.services.task_access import (
    find_task_or_none,
    find_writable_task,
    visible_view,
    writable_view,
)
from dittybag.services.task_claims import require_fence
from dittybag.services.task_service import TaskMark, with_comment

#: Tasks that are named with a claimed task, or in a message.
_MAX_RELATED: Final = 20


class ClaimRequest(Struct, frozen=True, kw_only=True):
    """What to claim, and for how long."""

    #: Only tasks of this project.
    project: str | None = None
    #: Only tasks with each of these labels.
    labels: tuple[str, ...] = ()
    lease_seconds: int = DEFAULT_LEASE
    #: The connection whose end releases the task; empty for none.
    connection: str = ""


class ClaimedTask(Struct, frozen=True, kw_only=True):
    """A claimed task, with what is needed to begin."""

    task: Task
    claim: Claim
    parent: Task | None
    #: What the task waited for: the tasks that blocked it, then its parts.
    done_before: list[Task]


class ReadyTasks(Struct, frozen=True):
    """The tasks that are ready to be claimed, best first."""

    tasks: list[Task]
    #: The number of ready tasks, `tasks` included, as far as they were counted.
    total: int


async def claim_next(transaction: Transaction, caller: Caller, request: ClaimRequest) -> ClaimedTask | None:
    """Claim the best ready task; `None` if none is ready."""
    require_write_scope(caller)
    lease = _lease(request)
    ready = await transaction.claims.ready(await _ready_query(transaction, caller, request, limit=1))
    task = await find_task_or_none(transaction, caller, ready[0]) if ready else None
    return None if task is None else await _claim(transaction, caller, task, request, lease)


async def claim_task(transaction: Transaction, caller: Caller, id: int, request: ClaimRequest) -> ClaimedTask:
    """Claim a task. Raises `TaskNotFound`, `TaskClaimed` and `TaskNotReady`."""
    lease = _lease(request)
    task = await find_writable_task(transaction, caller, id)
    claim = await transaction.claims.get(id)
    if claim is not None and claim.is_live(transaction.now):
        if not request.connection or claim.connection != request.connection:
            raise TaskClaimed(id, claim.holder, claim.claimed_at, claim.until)
        # The caller asks for what it has.
        renewed = replace(claim, lease=lease, until=transaction.now + lease)
        await transaction.claims.put(renewed)
        return await _with_context(transaction, caller, task, renewed)
    await _require_claimable(transaction, caller, task, has_lapsed=claim is not None)
    return await _claim(transaction, caller, task, request, lease)


async def _require_claimable(
    transaction: Transaction, caller: Caller, task: Task, *, has_lapsed: bool
) -> None:
    if task.status in ENDED or task.status == "review":
        raise TaskNotReady(task.id, f"is {'in review' if task.status == 'review' else task.status}")
    if task.status == "doing" and not has_lapsed and task.assignee not in (None, *_names(caller)):
        raise TaskNotReady(task.id, f"is in work, assigned to '{clip(task.assignee or '')}'")
    if (await transaction.edges.waiting([task.id])).get(task.id):
        blockers = await transaction.edges.open_blockers(task.id, _MAX_RELATED)
        found = [await find_task_or_none(transaction, caller, blocker) for blocker in blockers]
        named = ", ".join(f"task {blocker.id}" for blocker in found if blocker is not None)
        raise TaskNotReady(task.id, f"waits for {named or 'a task that you cannot see'}")


async def _claim(
    transaction: Transaction, caller: Caller, task: Task, request: ClaimRequest, lease: int
) -> ClaimedTask:
    holder = caller.actor[:ASSIGNEE_LENGTH]
    task = await update(transaction, task, status="doing", assignee=holder)
    now = transaction.now
    claim = Claim(task.id, transaction.last_seq, holder, request.connection, now, lease, now + lease)
    await transaction.claims.put(claim)
    return await _with_context(transaction, caller, task, claim)


async def _with_context(transaction: Transaction, caller: Caller, task: Task, claim: Claim) -> ClaimedTask:
    """Return a claimed task with those that it belongs to and depended on, as far as the caller sees them."""
    parent = None if task.parent is None else await find_task_or_none(transaction, caller, task.parent)
    waited_for = [other for _, other in await transaction.edges.blockers([task.id], _MAX_RELATED)]
    before = [await find_task_or_none(transaction, caller, other) for other in waited_for]
    return ClaimedTask(
        task=task, claim=claim, parent=parent, done_before=[item for item in before if item is not None]
    )


async def finish_task(
    transaction: Transaction,
    caller: Caller,
    id: int,
    *,
    fence: int | None = None,
    comment: str | None = None,
    status: TaskStatus = "done",
) -> Task:
    """End the work on a task: it is done, dropped or to be reviewed. Raises `ClaimLost` and `TaskClaimed`."""
    task = await find_writable_task(transaction, caller, id)
    await require_fence(transaction, caller, task, fence)
    fields = with_comment(transaction, caller, task, comment)
    completed_at = (task.completed_at or transaction.now) if status == "done" else None
    if not fields and task.status == status:
        return task
    return await update(transaction, task, status=status, completed_at=completed_at, **fields)


async def finish_tasks(
    transaction: Transaction,
    caller: Caller,
    ids: Sequence[int],
    *,
    fence: int | None = None,
    comment: str | None = None,
    status: TaskStatus = "done",
) -> list[TaskMark]:
    """End the work on tasks: on all of them or, if one cannot be finished, on none."""
    marks = []
    for number in dict.fromkeys(ids):
        before = await find_writable_task(transaction, caller, number)
        after = await finish_task(transaction, caller, number, fence=fence, comment=comment, status=status)
        marks.append(TaskMark(after, after.status != before.status))
    return marks


async def take_task(transaction: Transaction, caller: Caller, id: int, request: ClaimRequest) -> ClaimedTask:
    """Claim a task even if somebody works on it, who then no longer holds it. For people."""
    task = await find_writable_task(transaction, caller, id)
    if task.status in ("doing", "review"):
        await release_task(transaction, caller, id)
    return await claim_task(transaction, caller, id, request)


async def release_task(
    transaction: Transaction,
    caller: Caller,
    id: int,
    *,
    fence: int | None = None,
    comment: str | None = None,
) -> Task:
    """Give a task back: it is to do again, and assigned to nobody. Raises `ClaimLost` and `TaskClaimed`."""
    task = await find_writable_task(transaction, caller, id)
    await require_fence(transaction, caller, task, fence)
    if task.status not in ("doing", "review"):
        raise TaskNotReady(id, f"is {task.status}, so nobody works on it", action="released")
    fields = with_comment(transaction, caller, task, comment)
    return await update(transaction, task, status="todo", completed_at=None, assignee=None, **fields)


async def release_connection(transaction: Transaction, caller: Caller, connection: str) -> int:
    """Release the claims of a connection that has ended. Returns their number."""
    released = 0
    for claim in await transaction.claims.of_connection(connection) if connection else ():
        task = await find_task_or_none(transaction, caller, claim.task)
        if task is not None and claim.is_live(transaction.now):
            await update(transaction, task, status="todo", assignee=None)
            released += 1
    return released


async def renew_claims(transaction: Transaction, caller: Caller, connection: str) -> int:
    """Renew the claims of a connection that have not lapsed. Returns their number."""
    require_write_scope(caller)
    return await transaction.claims.renew(connection, transaction.now) if connection else 0


async def ready_tasks(
    transaction: Transaction, caller: Caller, request: ClaimRequest, *, limit: int
) -> ReadyTasks:
    """Return tasks that are ready to be claimed."""
    query = await _ready_query(transaction, caller, request, limit=limit)
    ready = await transaction.claims.ready(query)
    total = len(ready)
    if total == limit:
        total = await transaction.claims.count_ready(replace(query, limit=MAX_COUNTED))
    found = {task.id: task for task in await transaction.tasks.with_ids(ready)}
    return ReadyTasks([found[number] for number in ready], total)


#: Ready tasks are counted up to this number.
MAX_COUNTED: Final = 10_000


async def is_any_ready(transaction: Transaction, caller: Caller, request: ClaimRequest) -> bool:
    """Whether a task is ready to be claimed."""
    return bool(await transaction.claims.ready(await _ready_query(transaction, caller, request, limit=1)))


async def next_lapse(transaction: Transaction, caller: Caller) -> int | None:
    """Return in how many microseconds the next claim lapses; `None` if there is none."""
    found = await transaction.claims.next_lapse(transaction.now)
    return None if found is None else found - transaction.now


async def claims_of(transaction: Transaction, caller: Caller, ids: list[int]) -> dict[int, Claim]:
    """Return the live claims of tasks that the caller has read."""
    claims = await transaction.claims.of_tasks(ids)
    return {claim.task: claim for claim in claims if claim.is_live(transaction.now)}


async def waiting_of(transaction: Transaction, caller: Caller, ids: list[int]) -> dict[int, int]:
    """Return how many open tasks each of those that the caller has read waits for, if it is open."""
    return await transaction.edges.waiting(ids)


async def _ready_query(
    transaction: Transaction, caller: Caller, request: ClaimRequest, *, limit: int
) -> ReadyQuery:
    if request.project:
        await _require_writable_project(transaction, caller, request.project)
    return ReadyQuery(
        user=caller.user,
        view=await writable_view(transaction, caller),
        names=_names(caller),
        project=request.project,
        labels=request.labels,
        now=transaction.now,
        limit=limit,
    )


async def _require_writable_project(transaction: Transaction, caller: Caller, name: str) -> None:
    """Raise `ProjectNotFound` or `NotAllowed` rather than finding nothing for ever."""
    view = await visible_view(transaction, caller)
    project = await transaction.projects.by_name(name)
    if project is None or project.id in view.hidden:
        raise ProjectNotFound(name)
    if project.id in (await writable_view(transaction, caller)).hidden:
        raise NotAllowed("You can read the tasks of this project, but not change them")


def _names(caller: Caller) -> tuple[str, ...]:
    """Return the names under which a task may be assigned to the caller."""
    return tuple(dict.fromkeys((caller.actor[:ASSIGNEE_LENGTH], caller.user)))


def _lease(request: ClaimRequest) -> int:
    """Return the lease in microseconds. Raises `Invalid`."""
    if not MIN_LEASE <= request.lease_seconds <= MAX_LEASE:
        problem = f"lease must be between {MIN_LEASE} second and {MAX_LEASE // 3600} hours"
        raise Invalid([Problem("lease", problem)])
    return request.lease_seconds * MICROSECONDS


class TaskQueueService:
    """Hands out ready tasks, each to one holder at a time."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)

    claim_next = writing(claim_next)
    claim = writing(claim_task)
    take = writing(take_task)
    finish = writing(finish_task)
    finish_all = writing(finish_tasks)
    release = writing(release_task)
    release_connection = writing(release_connection)
    renew = writing(renew_claims)
    ready = reading(ready_tasks)
    is_any_ready = reading(is_any_ready)
    next_lapse = reading(next_lapse)
    claims_of = reading(claims_of)
    waiting_of = reading(waiting_of)
    unclaimed = reading(unclaimed_task)
