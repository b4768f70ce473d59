"""The links from folders to projects, built from settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dittybag.assembly.store_factory import database_name
from dittybag.config import Settings
from dittybag.domain.projects import ProjectKey
from dittybag.folders.project_links import LinkedFolder, ProjectLinks, linked_folder
from dittybag.folders.repositories import project_folders, real_folder

if TYPE_CHECKING:
    from dittybag.folders.client_folders import LocalClientFolders


def project_links(settings: Settings) -> ProjectLinks:
    """Return the links of the database of the settings."""
    return ProjectLinks(settings.home, database_name(settings.database))


def folder_to_link(settings: Settings, path: str | None) -> LinkedFolder | None:
    """Return a folder that can be linked: the given one, or that whose project the current folder belongs to.

    Returns `None` for the home folder and the root.
    """
    links = project_links(settings)
    if path is None:
        return linked_folder(os.getcwd(), links, settings.user_home)  # noqa: PTH109  # pathlib is slow to import
    if folders := project_folders(path, settings.user_home):
        return LinkedFolder(folders[0], links)
    # The link of a folder that was deleted can still be removed.
    return LinkedFolder(os.path.realpath(path), links) if real_folder(path) is None else None


def folders_by_project(settings: Settings) -> dict[ProjectKey, list[str]]:
    """Return the linked folders of each project."""
    found: dict[ProjectKey, list[str]] = {}
    for link in project_links(settings).all():
        found.setdefault(link.key, []).append(link.folder)
    return found


def client_folders(settings: Settings) -> LocalClientFolders:
    """Return what finds the folder that the client of this process works in."""
    from dittybag.folders.client_folders import LocalClientFolders

    return LocalClientFolders(
        project_links(settings), named=settings.client_folder, user_home=settings.user_home
    )
