"""Use cases for the projects of folders."""

from __future__ import annotations

from dittybag.domain.ports import ProjectFolder, Transaction
from dittybag.domain.projects import NEW_PROJECT, Project
from dittybag.services.entity_writes import create


async def find_folder_project(transaction: Transaction, folder: ProjectFolder) -> Project | None:
    """Return the project that a folder is linked to, or `None` if there is none or it was deleted."""
    key = folder.linked()
    project = None if key is None else await transaction.projects.get(key.id)
    return (
        project if project is not None and key is not None and project.created_at == key.created_at else None
    )


async def plan_folder_project(transaction: Transaction, folder: ProjectFolder) -> Project:
    """Return the project of a folder; if there is none, the one that the first write would create.

    It never gets the name of a project that exists: that one was made for something else.
    """
    if (project := await find_folder_project(transaction, folder)) is not None:
        return project
    names = folder.names()
    name = next(names)
    while await transaction.projects.by_name(name) is not None:
        name = next(names)
    return Project(id=NEW_PROJECT, name=name, created_at=transaction.now, updated_at=transaction.now)


async def create_folder_project(transaction: Transaction, folder: ProjectFolder) -> Project:
    """Return the project of a folder. If there is none, create it, as a change that is undone on its own.

    The link is written before the commit: after a crash in between, it leads to a project that does not
    exist, which counts as none. Writers of one database take turns, so two of them in one folder get the same
    project.
    """
    planned = await plan_folder_project(transaction, folder)
    if planned.id != NEW_PROJECT:
        return planned
    project = await create(transaction, planned)
    transaction.start_batch()
    folder.link(project)
    return project
