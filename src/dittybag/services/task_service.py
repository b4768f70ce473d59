"""Use cases for tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from dittybag.domain.changes import Change, Purged, require_content
from dittybag.domain.entities import ENTITY_TYPES, Entity
from dittybag.domain.errors import (
    ChangedMeanwhile,
    ChangeNotFound,
    Invalid,
    Problem,
    TaskNotFound,
    checked,
    clip,
    require,
)
from dittybag.domain.ports import Store, Transaction, Write
from dittybag.domain.queries import DEEP_OFFSET, TaskQuery
from dittybag.domain.tasks import (
    ASSIGNEE_LENGTH,
    DEFAULT_STATUS,
    ENERGIES,
    PRIORITIES,
    Comment,
    Task,
    TaskColumn,
    TaskFilter,
    TaskGrouping,
    TaskOrder,
    comment_problem,
    problems,
)
from dittybag.domain.text import near_matches
from dittybag.services.caller import (
    Caller,
    ScopedStore,
    checked_query,
    owner_reading,
    reading,
    require_write_scope,
    writing,
)
from dittybag.services.entity_writes import create, delete_all, next_version, require_version, update
from dittybag.services.history_service import UndoResult, first_seq_after, restore_state
from dittybag.services.task_access import (
    find_task,
    find_writable_task,
    locked_projects,
    require_unlocked,
    task_project,
    visible_view,
)
from dittybag.services.task_claims import require_fence, require_unclaimed

if TYPE_CHECKING:
    from dittybag.domain.task_drafts import TaskDraft, TaskImport
    from dittybag.domain.task_graph import TaskGraph
    from dittybag.services.task_details import TaskDetails

#: The fields of a task that are lists, in which nothing occurs twice.
_LISTS: Final = ("blocked_by", "labels", "links")
#: The labels of this many tasks are compared with one that no task has, and so many of them are named.
_MAX_LABELLED: Final = 500
_MAX_NAMED: Final = 10


class TaskStats(Struct, frozen=True):
    """The number of tasks by project, priority and status."""

    by_project: dict[str | None, int]
    by_priority: dict[int, int]
    total: int
    completed: int


class TaskMark(Struct, frozen=True):
    """A task that was completed or reopened, and whether that changed it."""

    task: Task
    changed: bool


class TaskBoard(Struct, frozen=True):
    """Some columns of a board and the number of all its columns."""

    columns: list[TaskColumn]
    #: Including the columns that are not in `columns`.
    count: int


async def create_task(
    transaction: Transaction, caller: Caller, /, *, comment: str | None = None, **fields: Any
) -> Task:
    """Create a task. `fields`: fields of `Task`.

    Without a `project`, it belongs to the caller's project; see `task_project`.
    """
    require_write_scope(caller)
    now = transaction.now
    fields = _validate(fields)
    given = fields.pop("project", UNSET)
    name, project = await task_project(transaction, caller, given)
    new = Task(
        id=0, user=caller.user, title="", created_at=now, updated_at=now, project=name, project_id=project
    )
    fields |= _completion(new, fields, now) | with_comment(transaction, caller, new, comment)
    await _require_edges(transaction, caller, new, fields)
    return await create(transaction, replace(new, **fields))


async def find_own_tasks(transaction: Transaction, caller: Caller, ids: Sequence[int]) -> list[Task]:
    """Return tasks that the caller may change now, each once. Raises `TaskNotFound` and `TaskClaimed`."""
    require_write_scope(caller)
    found = [await find_writable_task(transaction, caller, task_id) for task_id in dict.fromkeys(ids)]
    await require_unclaimed(transaction, caller, [task.id for task in found])
    return found


async def page_tasks(transaction: Transaction, caller: Caller, query: TaskQuery) -> list[Task]:
    """Return tasks of the caller by descending priority, then in creation order."""
    await _require_filter(transaction, caller, query.statuses, query.parent)
    view = await visible_view(transaction, caller)
    return await transaction.tasks.page(replace(query, user=caller.user, view=view))


async def update_task(
    transaction: Transaction,
    caller: Caller,
    /,
    id: int,
    *,
    version: int | None = None,
    done: bool | None = None,
    fence: int | None = None,
    comment: str | None = None,
    **fields: Any,
) -> Task:
    """Change the given fields, and complete or reopen the task if `done` is given.

    With nothing but a `fence`, the claim is renewed. Raises `Outdated` if `version` is given and not the
    current version, and `ClaimLost` or `TaskClaimed` if somebody else holds the task.
    """
    fields = _validate(fields)
    task = await find_writable_task(transaction, caller, id)
    require_version(task, version)
    await require_fence(transaction, caller, task, fence)
    if fields.get("project", task.project) != task.project:
        fields |= await _moved(transaction, caller, task, fields["project"])
    if done is not None and done != task.completed:
        fields["status"] = "done" if done else DEFAULT_STATUS
    fields |= _completion(task, fields, transaction.now) | with_comment(transaction, caller, task, comment)
    await _require_edges(transaction, caller, task, fields)
    if not fields and fence is not None:
        return task
    return await update(transaction, task, **fields)


async def update_tasks(
    transaction: Transaction, caller: Caller, /, ids: Sequence[int], **fields: Any
) -> list[TaskMark]:
    """Change the given fields of tasks: of all of them or, if one cannot be changed, of none."""
    wanted = _validate(fields)
    marks = []
    for task in await find_own_tasks(transaction, caller, ids):
        is_changed = any(getattr(task, name) != value for name, value in wanted.items())
        after = await update_task(transaction, caller, task.id, **wanted) if is_changed else task
        marks.append(TaskMark(after, is_changed))
    return marks


async def _moved(transaction: Transaction, caller: Caller, task: Task, project: str | None) -> dict[str, Any]:
    """Return the fields of a task that moves to a project, or to none, in which case it is the caller's."""
    name, number = await task_project(transaction, caller, project)
    left = task.project_id is not None and number is None
    return {"project": name, "project_id": number} | ({"user": caller.user} if left else {})


def _completion(task: Task, fields: Mapping[str, Any], now: int) -> dict[str, Any]:
    """Return when a task with new fields was completed, if that changes."""
    if "status" not in fields or (fields["status"] == "done") == task.completed:
        return {}
    return {"completed_at": now if fields["status"] == "done" else None}


def with_comment(transaction: Transaction, caller: Caller, task: Task, text: str | None) -> dict[str, Any]:
    """Return the comments of a task with another one; nothing without a text. Raises `Invalid`."""
    if not text:
        return {}
    checked("comment", text, comment_problem(text))
    comments = (*task.comments, Comment(transaction.now, caller.actor[:ASSIGNEE_LENGTH], text))
    require(problems(comments=comments))
    return {"comments": comments}


async def _require_edges(
    transaction: Transaction, caller: Caller, task: Task, fields: Mapping[str, Any]
) -> None:
    if "blocked_by" in fields or fields.get("parent") is not None:
        # Imported here because few tasks have edges.
        from dittybag.services.task_edges import require_edges

        blocked_by = fields.get("blocked_by", task.blocked_by)
        parent = fields.get("parent", task.parent)
        await require_edges(transaction, caller, task, blocked_by=blocked_by, parent=parent)


async def complete_task(transaction: Transaction, caller: Caller, id: int) -> Task:
    """Complete a task. A completed task stays as it is."""
    (mark,) = await complete_tasks(transaction, caller, [id])
    return mark.task


async def complete_tasks(transaction: Transaction, caller: Caller, ids: Sequence[int]) -> list[TaskMark]:
    """Complete tasks: all of them or, if one does not exist, none."""
    return await _mark(transaction, caller, ids, transaction.now)


async def reopen_tasks(transaction: Transaction, caller: Caller, ids: Sequence[int]) -> list[TaskMark]:
    """Reopen tasks: all of them or, if one does not exist, none."""
    return await _mark(transaction, caller, ids, None)


async def _mark(
    transaction: Transaction, caller: Caller, ids: Sequence[int], completed_at: int | None
) -> list[TaskMark]:
    tasks = await find_own_tasks(transaction, caller, ids)
    status = DEFAULT_STATUS if completed_at is None else "done"
    changed = {
        task.id: next_version(task, transaction.now, completed_at=completed_at, status=status)
        for task in tasks
        if (task.ended if completed_at is None else not task.completed)
    }
    await transaction.write_all(
        [Write("update", task, changed[task.id]) for task in tasks if task.id in changed]
    )
    return [TaskMark(changed.get(task.id, task), task.id in changed) for task in tasks]


async def delete_task(transaction: Transaction, caller: Caller, id: int) -> Task:
    (task,) = await delete_tasks(transaction, caller, [id])
    return task


async def delete_tasks(transaction: Transaction, caller: Caller, ids: Sequence[int]) -> list[Task]:
    """Delete tasks: all of them or, if one does not exist, none."""
    return await delete_all(transaction, await find_own_tasks(transaction, caller, ids))


async def search_tasks(
    transaction: Transaction,
    caller: Caller,
    text: str,
    *,
    title: bool = True,
    notes: bool = True,
    limit: int | None = None,
    max_bytes: int | None = None,
) -> tuple[int, list[Task]]:
    """Count the open and completed tasks that contain every word of a text; return the first of them.

    Case and accents do not matter. `max_bytes`: the maximum size of the texts of the returned tasks.
    """
    query = TaskQuery(
        user=caller.user,
        text=checked_query(text),
        in_title=title,
        in_notes=notes,
        limit=limit,
        max_bytes=max_bytes,
        view=await visible_view(transaction, caller),
    )
    return await transaction.tasks.search(query)


async def list_tasks(
    transaction: Transaction,
    caller: Caller,
    filter: TaskFilter,
    *,
    order: TaskOrder,
    limit: int,
    offset: int,
) -> TaskColumn:
    """Return the number of matching tasks and a page of them."""
    checked_query(filter.text)
    await _require_filter(transaction, caller, filter.statuses, filter.parent)
    view = await visible_view(transaction, caller)
    _, [found] = await transaction.tasks.columns(
        caller.user, filter, None, [0], span=range(1), order=order, limit=limit, offset=offset, view=view
    )
    return found


async def _require_filter(
    transaction: Transaction, caller: Caller, statuses: Sequence[str], parent: int | None
) -> None:
    """Raise `Invalid` for a filter that no task can match, whose empty list would look like an answer."""
    require(problem for status in statuses for problem in problems(status=status))
    if parent is not None:
        from dittybag.services.task_edges import require_task

        await require_task(transaction, caller, parent, "parent")


async def require_label(transaction: Transaction, caller: Caller, label: str) -> None:
    """Raise `Invalid`, with the labels of other tasks, if no task has a label."""
    query = TaskQuery(
        user=caller.user, view=await visible_view(transaction, caller), labels=(label,), limit=1
    )
    if await transaction.tasks.page(query):
        return
    newest = await transaction.tasks.page(replace(query, labels=(), order="updated", limit=_MAX_LABELLED))
    labels = list(dict.fromkeys(label for task in newest for label in task.labels))
    named = near_matches(label, labels, _MAX_NAMED) or labels[:_MAX_NAMED]
    others = f"; labels are for example {', '.join(named)}" if named else ""
    raise Invalid([Problem("label", f"no task has the label '{clip(label, 60)}'{others}")])


async def task_board(
    transaction: Transaction,
    caller: Caller,
    filter: TaskFilter,
    by: TaskGrouping,
    *,
    order: TaskOrder,
    limit: int,
    width: int,
    first: int = 0,
) -> TaskBoard:
    """Return `width` columns from column `first` on, each with its first tasks.

    All priorities and energies are columns, highest first. Of projects, those with the most tasks come
    first.
    """
    checked_query(filter.text)
    keys = _column_keys(filter, by)
    last = first + width if keys is None else min(first + width, len(keys))
    view = await visible_view(transaction, caller)
    span = range(min(first, last), last)
    count, columns = await transaction.tasks.columns(
        caller.user, filter, by, keys, span=span, order=order, limit=limit, view=view
    )
    return TaskBoard(columns, count)


async def status_board(
    transaction: Transaction, caller: Caller, filter: TaskFilter, *, order: TaskOrder, limit: int
) -> list[TaskColumn]:
    """Return the columns of the board by status, whose keys are those of `BOARD_COLUMNS`."""
    checked_query(filter.text)
    view = await visible_view(transaction, caller)
    return await transaction.tasks.status_columns(caller.user, filter, order=order, limit=limit, view=view)


async def latest_task_change(transaction: Transaction, caller: Caller, id: int) -> Change:
    """Return the latest change of a task, even a deleted one. Raises `TaskNotFound`."""
    change = await transaction.changes.latest("task", str(id))
    if change is None or not isinstance(change.state, Task | Purged):
        raise TaskNotFound(id)
    view = await visible_view(transaction, caller)
    if change.state.user != caller.user if change.project is None else change.project in view.hidden:
        raise TaskNotFound(id)
    if change.after is not None and await transaction.find("task", id=id) is None:
        # It left the project, and row-level security hides the changes since then.
        raise TaskNotFound(id)
    if isinstance(change.state, Purged):
        require_content([change])
    return change


async def undo_latest_task_change(
    transaction: Transaction, caller: Caller, id: int, seq: int
) -> Entity | None:
    """Undo the latest change of a task. Returns the restored task, or `None` if the change created it.

    Raises `ChangedMeanwhile` if `seq` is no longer the latest change.
    """
    require_write_scope(caller)
    latest = await latest_task_change(transaction, caller, id)
    if latest.seq != seq:
        raise ChangedMeanwhile
    await require_unlocked(transaction, caller, latest.project)
    require_content([latest])
    return await restore_state(transaction, caller, latest, latest.before)


async def undo_task_batch(transaction: Transaction, caller: Caller, seq: int) -> UndoResult:
    """Undo a change of a task and the rest of its batch, which changed only tasks.

    Other than an undo in the history, it needs no access to the caller's project: tasks may belong to several
    projects. Raises `ChangedMeanwhile` if one of them was changed since.
    """
    require_write_scope(caller)
    first = await transaction.changes.get(seq)
    batch = [] if first is None else await transaction.changes.batch(first.batch, None)
    is_whole = bool(batch) and len(batch) == await transaction.changes.batch_size(batch[0].batch)
    if not is_whole or any(change.kind != "task" for change in batch):
        raise ChangeNotFound(seq)
    newest = await transaction.changes.newest_seq()
    for change in reversed(batch):
        try:
            await undo_latest_task_change(transaction, caller, int(change.entity), change.seq)
        except TaskNotFound:
            raise ChangeNotFound(seq) from None
    return UndoResult(batch, await first_seq_after(transaction, newest))


async def task_stats(transaction: Transaction, caller: Caller) -> TaskStats:
    groups = await transaction.tasks.groups(caller.user, await visible_view(transaction, caller))
    by_project: dict[str | None, int] = {}
    by_priority: dict[int, int] = {}
    for group in groups:
        by_project[group.project] = by_project.get(group.project, 0) + group.total
        by_priority[group.priority] = by_priority.get(group.priority, 0) + group.total
    return TaskStats(
        by_project,
        by_priority,
        total=sum(group.total for group in groups),
        completed=sum(group.completed for group in groups),
    )


async def count_all_tasks(transaction: Transaction) -> int:
    """Count the tasks of all users, for the owner of the machine."""
    return await transaction.tasks.count_all()


def _validate(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields as they are stored. Raises `Invalid`."""
    require(problems(**fields))
    return ENTITY_TYPES["task"].normalise(fields) | {
        name: tuple(dict.fromkeys(fields[name])) for name in _LISTS if name in fields
    }


def _column_keys(filter: TaskFilter, by: TaskGrouping) -> list[int] | list[str] | None:
    """Return the keys of a board's columns, or `None` if they depend on the tasks."""
    if by == "priority":
        every = list(range(PRIORITIES[1], PRIORITIES[0] - 1, -1))
        return every if filter.priority is None else [filter.priority]
    if by == "energy":
        return list(reversed(ENERGIES)) if filter.energy is None else [filter.energy]
    return None if filter.project is None else [filter.project]


class TaskService:
    """Creates, finds, lists, changes and deletes tasks: the caller's own, and those of projects."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)

    create = writing(create_task, checked=True)
    get = reading(find_task)
    locked_projects = reading(locked_projects)
    status_board = reading(status_board, slow=True)
    update = writing(update_task, checked=True)
    update_all = writing(update_tasks)
    complete = writing(complete_task, checked=True)
    delete = writing(delete_task, checked=True)
    complete_all = writing(complete_tasks, checked=True)
    reopen_all = writing(reopen_tasks, checked=True)
    delete_all = writing(delete_tasks, checked=True)
    search = reading(search_tasks, slow=True)
    listing = reading(list_tasks, slow=True)
    require_label = reading(require_label, slow=True)
    board = reading(task_board, slow=True)
    latest_change = reading(latest_task_change)
    undo_latest = writing(undo_latest_task_change)
    undo_batch = writing(undo_task_batch)
    count_all = owner_reading(count_all_tasks, slow=True)
    stats = reading(task_stats, slow=True)

    async def page(self, caller: Caller, query: TaskQuery) -> list[Task]:
        """See `page_tasks`."""
        return await self._store.read(caller, page_tasks, query, slow=query.offset > DEEP_OFFSET)

    async def graph(
        self,
        caller: Caller,
        *,
        project: str | None = None,
        root: int | None = None,
        ended: bool = False,
        limit: int | None = None,
    ) -> TaskGraph:
        """Return a graph of open tasks, or of all; see `task_graph`. A graph around one has no `limit`."""
        # Imported here because few processes draw graphs.
        from dittybag.domain.task_graph import MAX_GRAPH, GraphQuery
        from dittybag.services.task_graphs import task_graph

        query = GraphQuery(user=caller.user, project=project, ended=ended, limit=limit or MAX_GRAPH)
        return await self._store.read(caller, task_graph, query, root, slow=True)

    async def find_named(self, caller: Caller, title: str) -> Task | None:
        """Return the task that a person names by its title; see `find_named_task`."""
        # Imported here because only a title needs it.
        from dittybag.services.task_lookup import find_named_task

        return await self._store.read(caller, find_named_task, title, slow=True)

    async def details(self, caller: Caller, id: int) -> TaskDetails:
        """Return a task with what is around it; see `task_details`."""
        from dittybag.services.task_details import task_details

        return await reading(task_details)(self, caller, id)

    async def plan(
        self, caller: Caller, drafts: Sequence[TaskDraft], project: str | UnsetType | None = UNSET
    ) -> list[Task]:
        """Create tasks with edges between them, all of them or none; see `plan_tasks`."""
        # Imported here because few processes create several tasks at once.
        from dittybag.services.task_plan import plan_tasks

        return await writing(plan_tasks)(self, caller, drafts, project)

    async def import_drafts(
        self,
        caller: Caller,
        drafts: Sequence[TaskDraft],
        project: str | UnsetType | None = UNSET,
        *,
        dry_run: bool = False,
    ) -> TaskImport:
        """Create the tasks that were not imported before; see `import_tasks`."""
        from dittybag.services.task_plan import import_tasks

        return await writing(import_tasks)(self, caller, drafts, project, dry_run=dry_run)
