"""Use cases for projects."""

from __future__ import annotations

from msgspec.structs import replace

from dittybag.domain.changes import Action
from dittybag.domain.errors import NotAllowed, ProjectNotFound, ProjectProtected
from dittybag.domain.ports import ProjectFolder, Store, Transaction, Write
from dittybag.domain.projects import DEFAULT_PROJECT, Project, ProjectSize, checked_new_name
from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import TaskView
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.services.caller import (
    Caller,
    ScopedStore,
    owner_reading,
    owner_writing,
    readable_project,
    reading,
)
from dittybag.services.entity_writes import create, next_version, require_unique
from dittybag.services.folder_projects import create_folder_project, find_folder_project


async def find_project(transaction: Transaction, name: str) -> Project:
    """Return a project. Raises `ProjectNotFound`."""
    project = await transaction.projects.by_name(name)
    if project is None:
        raise ProjectNotFound(name)
    return project


async def find_visible_project(transaction: Transaction, caller: Caller, name: str) -> Project:
    """Return a project. Raises `ProjectNotFound`, also if it is hidden from the caller."""
    project = await find_project(transaction, name)
    if caller.principal is not None:
        hidden = await transaction.accounts.projects_hidden_from(caller.user)
        if project.id in hidden:
            raise ProjectNotFound(name)
    return project


async def list_projects(transaction: Transaction, caller: Caller | None = None) -> list[ProjectSize]:
    """Return the projects that the caller can see, with the caller's tasks counted.

    Without a caller, return all projects with all tasks counted.
    """
    sizes = await transaction.projects.all()
    if caller is None or caller.principal is None:
        return sizes
    hidden = await transaction.accounts.projects_hidden_from(caller.user)
    tasks: dict[str | None, int] = {}
    for group in await transaction.tasks.groups(caller.user, TaskView(shared=True, hidden=tuple(hidden))):
        tasks[group.project] = tasks.get(group.project, 0) + group.total
    return [
        replace(size, tasks=tasks.get(size.project.name, 0))
        for size in sizes
        if size.project.id not in hidden
    ]


async def project_names(
    transaction: Transaction, caller: Caller | None, prefix: str, limit: int
) -> list[str]:
    """Return names that start with `prefix`, ignoring case, of projects that the caller can see."""
    if caller is None or caller.principal is None:
        return await transaction.projects.names(prefix, limit)
    hidden = await transaction.accounts.projects_hidden_from(caller.user)
    found: list[str] = []
    for name in await transaction.projects.names(prefix, limit + len(hidden)):
        project = await transaction.projects.by_name(name)
        if project is not None and project.id not in hidden:
            found.append(name)
    return found[:limit]


async def create_project(transaction: Transaction, name: str, *, actor: str) -> Project:
    checked_new_name(name)
    project = Project(id=0, name=name, created_at=transaction.now, updated_at=transaction.now)
    await require_unique(transaction, None, project, None)
    return await create(transaction, project)


async def _create_folder_project(transaction: Transaction, folder: ProjectFolder, *, actor: str) -> Project:
    return await create_folder_project(transaction, folder)


async def rename_project(transaction: Transaction, name: str, new_name: str, *, actor: str) -> Project:
    checked_new_name(new_name)
    project = await find_project(transaction, name)
    if name == DEFAULT_PROJECT:
        raise ProjectProtected(name)
    if new_name == name:
        return project
    renamed = next_version(project, transaction.now, name=new_name)
    await require_unique(transaction, project, renamed, None)
    tasks = await task_renames(transaction, renamed, "update")
    await transaction.write_all([Write("update", project, renamed), *tasks])
    return renamed


async def task_renames(transaction: Transaction, project: Project, action: Action) -> list[Write]:
    """Return the writes by which the tasks of a project name it as it is called now."""
    return [
        Write(action, task, next_version(task, transaction.now, project=project.name))
        for task in await transaction.tasks.in_project(project.id)
        if task.project != project.name
    ]


async def delete_project(transaction: Transaction, name: str, *, actor: str) -> Project:
    """Delete a project with its prompts, resources and tasks. Tasks that only name it stay."""
    project = await find_project(transaction, name)
    await transaction.write_all(
        [*await content_deletions(transaction, project), Write("delete", project, None)]
    )
    return project


async def content_deletions(transaction: Transaction, project: Project) -> list[Write]:
    """Return the deletions of what belongs to a project, which come before its own."""
    if project.name == DEFAULT_PROJECT:
        raise ProjectProtected(project.name)
    contents: tuple[Prompt | Resource | Task, ...] = (
        *await transaction.prompts.in_project(project.id),
        *await transaction.resources.listing(project.id),
        *await transaction.tasks.in_project(project.id),
    )
    return [Write("delete", entity, None) for entity in contents]


def can_create_projects(caller: Caller) -> bool:
    """Return whether the caller may create projects."""
    return caller.principal is None or caller.principal.has("admin")


class ProjectService:
    """Creates, lists, renames and deletes projects."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)

    find = owner_reading(find_project)
    find_visible = reading(find_visible_project)
    of_caller = reading(readable_project)
    of_folder = owner_reading(find_folder_project)
    create_of_folder = owner_writing(_create_folder_project)
    create = owner_writing(create_project)
    rename = owner_writing(rename_project)
    delete = owner_writing(delete_project)

    async def all(self, caller: Caller | None = None) -> list[ProjectSize]:
        """See `list_projects`."""
        return await self._store.read(caller, list_projects, slow=True)

    async def names(self, prefix: str, limit: int, caller: Caller | None = None) -> list[str]:
        """See `project_names`."""
        return await self._store.read(caller, project_names, prefix, limit)

    async def create_for(self, caller: Caller, name: str) -> Project:
        """Like `create`, but raise `NotAllowed` if the caller's token lacks the admin scope."""
        if not can_create_projects(caller):
            raise NotAllowed("Use a token with the admin scope to create projects")
        return await self.create(name, actor=caller.actor)
