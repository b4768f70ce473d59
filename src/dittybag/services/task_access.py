"""Which tasks a caller can see and change."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from dittybag.domain.errors import NotAllowed, TaskNotFound
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.queries import TaskView
from dittybag.domain.tasks import Task
from dittybag.services.caller import Caller, existing_project, require_write_scope


async def visible_view(transaction: Transaction, caller: Caller) -> TaskView:
    """Return which tasks the caller can see: their own, and those of projects that they can see."""
    if caller.own_tasks_only:
        shared = False
    else:
        # Without tasks of others, a query for the caller's own tasks is faster.
        shared = await transaction.tasks.has_shared_by_others(caller.user)
    return TaskView(shared, await _hidden(transaction, caller))


async def writable_view(transaction: Transaction, caller: Caller) -> TaskView:
    """Return which tasks the caller can change."""
    locked: set[int] = set()
    if caller.principal is not None:
        locked = await transaction.accounts.projects_locked_for(caller.user)
    return TaskView(not caller.own_tasks_only, tuple(sorted(locked)))


async def _hidden(transaction: Transaction, caller: Caller) -> tuple[int, ...]:
    if caller.principal is None:
        return ()
    return tuple(sorted(await transaction.accounts.projects_hidden_from(caller.user)))


async def find_task(transaction: Transaction, caller: Caller, id: int) -> Task:
    """Return a task that the caller can see. Raises `TaskNotFound`."""
    view = TaskView(not caller.own_tasks_only, await _hidden(transaction, caller))
    task = await transaction.tasks.get(caller.user, id, view)
    if task is None:
        raise TaskNotFound(id)
    return task


async def find_task_or_none(transaction: Transaction, caller: Caller, id: int) -> Task | None:
    """Return a task, or `None` if the caller cannot see it."""
    try:
        return await find_task(transaction, caller, id)
    except TaskNotFound:
        return None


async def find_writable_task(transaction: Transaction, caller: Caller, id: int) -> Task:
    """Return a task that the caller may change. Raises `TaskNotFound` and `NotAllowed`."""
    require_write_scope(caller)
    task = await find_task(transaction, caller, id)
    await require_unlocked(transaction, caller, task.project_id)
    return task


async def require_unlocked(transaction: Transaction, caller: Caller, project: int | None) -> None:
    """Raise `NotAllowed` if the caller may not change the tasks of a project."""
    if caller.principal is None or project is None:
        return
    if project in await transaction.accounts.projects_locked_for(caller.user):
        raise NotAllowed("You can read the tasks of this project, but not change them")


async def locked_projects(transaction: Transaction, caller: Caller) -> frozenset[int]:
    """Return the projects whose tasks the caller may not change. Some of them may be hidden."""
    if caller.principal is None:
        return frozenset()
    return frozenset(await transaction.accounts.projects_locked_for(caller.user))


async def task_project(
    transaction: Transaction, caller: Caller, name: str | UnsetType | None = UNSET
) -> tuple[str | None, int | None]:
    """Return the name and the id of the project of a new task. Raises `NotAllowed`.

    Without a `name`, it is the caller's project, except for the default project: a task there is the caller's
    alone. So is one with a name that is not that of a project which the caller can see.
    """
    if caller.own_tasks_only or (name is not UNSET and not name):
        # In the task contract, a project is any text.
        return (None if name is UNSET else name or None), None
    project: Project | None = None
    if name is not UNSET:
        project = await _find_visible(transaction, caller, name or "")
    elif caller.principal is None or caller.principal.changes_project:
        project = await existing_project(transaction, caller)
        project = None if project.name == DEFAULT_PROJECT else project
    if project is None:
        return (None if name is UNSET else name), None
    await require_unlocked(transaction, caller, project.id)
    return project.name, project.id


async def _find_visible(transaction: Transaction, caller: Caller, name: str) -> Project | None:
    project = await transaction.projects.by_name(name)
    is_visible = project is not None and project.id not in await _hidden(transaction, caller)
    return project if is_visible else None
