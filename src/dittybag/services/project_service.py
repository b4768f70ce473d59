"""Use cases for projects."""

from __future__ import annotations

from msgspec.structs import replace

from dittybag.domain.errors import NameTaken, NotAllowed, ProjectNotFound, ProjectProtected
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.projects import DEFAULT_PROJECT, Project, ProjectSize, checked_name
from dittybag.services.caller import Caller, ScopedStore


class ProjectService:
    """Creates, lists, renames and deletes projects."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)
        #: For use cases of the owner of the machine.
        self._unscoped = store

    async def find(self, name: str) -> Project:
        async def work(transaction: Transaction) -> Project:
            return await _find_project(transaction, name)

        return await self._unscoped.read(work)

    async def all(self, caller: Caller | None = None) -> list[ProjectSize]:
        """Return the projects that the caller can see, with the caller's tasks counted.

        Without a caller, return all projects with all tasks counted.
        """

        async def work(transaction: Transaction) -> list[ProjectSize]:
            sizes = await transaction.projects.all()
            if caller is None or caller.principal is None:
                return sizes
            hidden = await transaction.accounts.projects_hidden_from(caller.user)
            tasks: dict[str | None, int] = {}
            for group in await transaction.tasks.groups(caller.user):
                tasks[group.project] = tasks.get(group.project, 0) + group.total
            return [
                replace(size, tasks=tasks.get(size.project.name, 0))
                for size in sizes
                if size.project.id not in hidden
            ]

        return await self._store.read(caller, work, slow=True)

    async def names(self, prefix: str, limit: int, caller: Caller | None = None) -> list[str]:
        """Return names that start with `prefix`, ignoring case, of projects that the caller can see."""

        async def work(transaction: Transaction) -> list[str]:
            if caller is None or caller.principal is None:
                return await transaction.projects.names(prefix, limit)
            hidden = await transaction.accounts.projects_hidden_from(caller.user)
            found: list[str] = []
            for name in await transaction.projects.names(prefix, limit + len(hidden)):
                project = await transaction.projects.by_name(name)
                if project is not None and project.id not in hidden:
                    found.append(name)
            return found[:limit]

        return await self._store.read(caller, work)

    async def create(self, name: str, *, actor: str) -> Project:
        checked_name(name)

        async def work(transaction: Transaction) -> Project:
            await _require_free(transaction, name)
            now = transaction.now
            project = Project(id=0, name=name, created_at=now, updated_at=now)
            stored = await transaction.write("create", None, project)
            assert stored is not None
            return stored

        return await self._unscoped.write(work, actor=actor)

    async def create_for(self, caller: Caller, name: str) -> Project:
        """Like `create`, but raise `NotAllowed` if the caller's token lacks the admin scope."""
        if not can_create_projects(caller):
            raise NotAllowed("Use a token with the admin scope to create projects")
        return await self.create(name, actor=caller.actor)

    async def rename(self, name: str, new_name: str, *, actor: str) -> Project:
        checked_name(new_name)

        async def work(transaction: Transaction) -> Project:
            project = await _find_project(transaction, name)
            if name == DEFAULT_PROJECT:
                raise ProjectProtected(name)
            if new_name == name:
                return project
            await _require_free(transaction, new_name)
            renamed = replace(project, name=new_name, updated_at=transaction.now, version=project.version + 1)
            await transaction.write("update", project, renamed)
            return renamed

        return await self._unscoped.write(work, actor=actor)

    async def delete(self, name: str, *, actor: str) -> Project:
        """Delete a project with its prompts and resources. Tasks stay: their project is free text."""

        async def work(transaction: Transaction) -> Project:
            project = await _find_project(transaction, name)
            await delete_contents(transaction, project)
            await transaction.write("delete", project, None)
            return project

        return await self._unscoped.write(work, actor=actor)


def can_create_projects(caller: Caller) -> bool:
    """Return whether the caller may create projects."""
    return caller.principal is None or caller.principal.has("admin")


async def delete_contents(transaction: Transaction, project: Project) -> None:
    """Delete the prompts and resources of a project before the project itself, each as its own change."""
    if project.name == DEFAULT_PROJECT:
        raise ProjectProtected(project.name)
    for prompt in await transaction.prompts.in_project(project.id):
        await transaction.write("delete", prompt, None)
    for resource in await transaction.resources.listing(project.id):
        await transaction.write("delete", resource, None)


async def _find_project(transaction: Transaction, name: str) -> Project:
    project = await transaction.projects.by_name(name)
    if project is None:
        raise ProjectNotFound(name)
    return project


async def _require_free(transaction: Transaction, name: str) -> None:
    if await transaction.projects.by_name(name) is not None:
        raise NameTaken("project", name)
