"""The folder that a client works in: from its environment, its roots, or where it was started."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Final

from dittybag.domain.ports import ChosenFolder, FolderSource
from dittybag.folders.project_links import ProjectLinks, linked_folder
from dittybag.folders.repositories import real_folder

#: Longer URIs are not paths of this machine.
_MAX_URI: Final = 32 * 1024


class LocalClientFolders:
    """Finds the folder that a client on this machine works in."""

    def __init__(self, links: ProjectLinks, *, named: str | None, user_home: str) -> None:
        """`named`: the folder in `CLAUDE_PROJECT_DIR`."""
        self._links = links
        self._named = named
        self._user_home = user_home

    def signature(self) -> Hashable:
        """Return a value that changes whenever a folder is linked or unlinked."""
        return self._links.signature()

    def from_environment(self) -> ChosenFolder | None:
        """Return the folder that the client has named in the environment, if it exists."""
        folder = None if self._named is None else real_folder(self._named)
        return None if folder is None else self._chosen("CLAUDE_PROJECT_DIR", folder)

    def from_roots(self, uris: Sequence[str]) -> ChosenFolder | None:
        """Return the first root that is a folder of this machine."""
        folders = [folder for uri in uris if (folder := root_folder(uri)) is not None]
        chosen = [self._chosen("roots", folder) for folder in folders]
        return next((item for item in chosen if item.folder is not None), chosen[0] if chosen else None)

    def from_working_folder(self) -> ChosenFolder:
        try:
            folder = os.getcwd()
        except OSError:
            # It was deleted.
            return ChosenFolder("working folder", None)
        return self._chosen("working folder", folder)

    def _chosen(self, source: FolderSource, folder: str) -> ChosenFolder:
        return ChosenFolder(source, linked_folder(folder, self._links, self._user_home))


def root_folder(uri: str) -> str | None:
    """Return the folder of a root, or of a root that is a file; `None` if it is not one of this machine."""
    scheme, _, rest = uri.partition(":")
    if scheme.lower() != "file" or len(uri) > _MAX_URI:
        return None
    # Imported here because only clients with roots need it.
    from urllib.parse import unquote_to_bytes

    path = rest.partition("#")[0].partition("?")[0]
    if path.startswith("//"):
        host, slash, path = path[2:].partition("/")
        if host.lower() not in ("", "localhost"):
            return None
        path = slash + path
    path = os.fsdecode(unquote_to_bytes(path.encode("utf-8", "surrogatepass")))
    if not path.startswith("/"):
        return None
    return real_folder(path) or real_folder(os.path.dirname(path)) if _exists(path) else None


def _exists(path: str) -> bool:
    try:
        return os.path.exists(path)
    except ValueError:
        # It contains a NUL character.
        return False
