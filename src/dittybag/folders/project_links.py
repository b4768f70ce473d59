"""The links from folders of this machine to projects, in one file per database."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from dittybag import files
from dittybag.domain.errors import LinksUnusable, StorageBusy
from dittybag.domain.folders import project_names
from dittybag.domain.projects import Project, ProjectKey
from dittybag.folders.repositories import project_folders

FOLDER: Final = "project-links"

_MAX_BYTES: Final = 16 * 1024 * 1024
#: Maximum number of links. A new one replaces the oldest.
_MAX_LINKS: Final = 10_000
_LOCK_SECONDS: Final = 5.0


class ProjectLink(Struct, frozen=True, kw_only=True):
    """A link. A project is the same only if it also has the same time of creation: ids are per database."""

    folder: str
    project: int
    created_at: int
    #: The name when the link was made, for people who read the file.
    name: str

    @property
    def key(self) -> ProjectKey:
        return ProjectKey(self.project, self.created_at)


class _LinkFile(Struct, frozen=True, kw_only=True):
    database: str
    links: list[ProjectLink]


class ProjectLinks:
    """The links of one database."""

    def __init__(self, home: str, database: str) -> None:
        """`database`: its absolute path, or its URL without the password."""
        # Imported here because it is slow to import.
        from hashlib import sha256

        digest = sha256(os.fsencode(database)).hexdigest()[:24]
        self._path = os.path.join(home, FOLDER, f"{digest}.json")
        self._database = _printable(database)
        self._read: tuple[Hashable, dict[str, ProjectLink]] = None, {}

    def signature(self) -> Hashable:
        """Return a value that changes whenever the links change."""
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LinksUnusable(self._path, files.describe(error)) from error
        return status.st_ino, status.st_mtime_ns, status.st_size

    def all(self) -> Sequence[ProjectLink]:
        """Return all links in the order in which they were made."""
        return tuple(self._links().values())

    def find(self, folder: str) -> ProjectLink | None:
        return self._links().get(_printable(folder))

    def add(self, folder: str, project: Project) -> None:
        """Link a folder to a project, instead of the one that it was linked to before."""
        folder = _printable(folder)
        link = ProjectLink(
            folder=folder, project=project.id, created_at=project.created_at, name=project.name
        )
        self._change(folder, link)

    def remove(self, folder: str) -> bool:
        """Remove the link of a folder. Return whether there was one."""
        return self.find(folder) is not None and self._change(_printable(folder), None)

    def _change(self, folder: str, link: ProjectLink | None) -> bool:
        try:
            files.make_folders(os.path.dirname(self._path))
            with files.locked(f"{self._path}.lock", _LOCK_SECONDS):
                links = dict(self._links())
                before = links.pop(folder, None)
                if link is not None:
                    links[folder] = link
                kept = list(links.values())[-_MAX_LINKS:]
                content = msgspec.json.encode(_LinkFile(database=self._database, links=kept))
                with files.atomic_write(self._path) as file:
                    file.write(msgspec.json.format(content))
        except files.LockTimeout as error:
            raise StorageBusy(self._path) from error
        except OSError as error:
            raise LinksUnusable(self._path, files.describe(error)) from error
        return before is not None

    def _links(self) -> dict[str, ProjectLink]:
        """Return the links by folder, read again only if the file has changed."""
        signature = self.signature()
        if signature is None:
            return {}
        if self._read[0] != signature:
            try:
                content = msgspec.json.decode(files.read(self._path, _MAX_BYTES), type=_LinkFile)
            except FileNotFoundError:
                return {}
            except OSError as error:
                raise LinksUnusable(self._path, files.describe(error)) from error
            except (msgspec.MsgspecError, ValueError) as error:
                raise LinksUnusable(self._path, str(error)) from error
            self._read = signature, {link.folder: link for link in content.links}
        return self._read[1]


class LinkedFolder:
    """A folder that is linked to a project, or will be when something is first written."""

    def __init__(self, path: str, links: ProjectLinks) -> None:
        self.path = path
        self._links = links

    def names(self) -> Iterator[str]:
        """Yield names for a new project, the best ones first, without an end."""
        return project_names(_printable(self.path))

    def linked(self) -> ProjectKey | None:
        """Return the project that the folder is linked to. It may no longer exist."""
        link = self._links.find(self.path)
        return None if link is None else link.key

    def link(self, project: Project) -> None:
        """Link the folder to a project, durably."""
        self._links.add(self.path, project)

    def unlink(self) -> bool:
        """Remove the link. Return whether there was one."""
        return self._links.remove(self.path)


def linked_folder(path: str, links: ProjectLinks, user_home: str) -> LinkedFolder | None:
    """Return the folder whose project a path belongs to: the top of its repository, or the folder itself.

    A folder inside a repository that is linked comes before its top. Returns `None` if the path belongs to
    no project; see `project_folders`.
    """
    folders = project_folders(path, user_home)
    if not folders:
        return None
    return LinkedFolder(next(filter(links.find, folders), folders[-1]), links)


def _printable(path: str) -> str:
    """Return a path as text: names of files need not be valid UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
