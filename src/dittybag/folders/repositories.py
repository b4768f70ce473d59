"""The repository of a folder, found by reading files: Git itself is not started."""

from __future__ import annotations

import os
import stat
from typing import Final

from dittybag import files

#: At most this many folders are looked at on the way up.
_MAX_LEVELS: Final = 100
#: Maximum size of the files that are read: a path, and the configuration of a repository.
_MAX_PATH_BYTES: Final = 8 * 1024
_MAX_CONFIG_BYTES: Final = 256 * 1024


def project_folders(folder: str, user_home: str) -> list[str]:
    """Return a folder and those above it up to the top of its repository, which is the last one.

    Without a repository, that is the folder alone. A worktree belongs to the repository that it was made
    from, and a submodule is a repository of its own. Returns nothing if the folder does not exist, and for
    the home folder and the root, which belong to no project, whatever repository they are.
    """
    start = real_folder(folder)
    homes = {os.path.sep, os.path.realpath(user_home) if user_home else os.path.sep}
    if start is None or start in homes:
        return []
    passed: list[str] = []
    current = start
    while current not in homes and len(passed) < _MAX_LEVELS:
        passed.append(current)
        if (kind := _kind(os.path.join(current, ".git"))) is not None:
            top = _top_of_checkout(current) if kind == "file" else current
            return passed if top == current or top in homes else [*passed, top]
        current = os.path.dirname(current)
    return [start]


def real_folder(path: str) -> str | None:
    """Return the path of a folder with links resolved, or `None` if there is no such folder."""
    try:
        path = os.path.realpath(path)
        return path if os.path.isdir(path) else None
    except (OSError, ValueError):
        # For example, a path with a NUL character.
        return None


def _kind(path: str) -> str | None:
    """Return whether a path is a "folder" or a "file"; `None` if it is neither, or cannot be seen."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return None
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else None


def _top_of_checkout(folder: str) -> str:
    """Return the top for a folder whose `.git` is a file, which names the folder with the data of Git.

    For a worktree, that folder has a file `commondir`, which leads to the repository, and a file `gitdir`,
    which leads back. The repository must contain it, or a downloaded folder could claim to be a worktree of
    any repository.
    """
    data = _data_folder(folder)
    common, back = (
        _read_text(os.path.join(data, name), _MAX_PATH_BYTES).strip() if data else ""
        for name in ("commondir", "gitdir")
    )
    repository = real_folder(os.path.join(data, common)) if common and back else None
    if repository is None or not _is_repository(repository):
        return folder
    back = os.path.join(data, back)
    # The name counts too: a link to the `.git` of a worktree is the same file.
    leads_back = _is_same_file(back, os.path.join(folder, ".git")) and _is_same_file(
        os.path.dirname(back), folder
    )
    is_inside = _is_same_file(os.path.join(data, os.pardir), os.path.join(repository, "worktrees"))
    return (_work_tree(repository) or folder) if leads_back and is_inside else folder


def _data_folder(folder: str) -> str:
    """Return the folder that a file `.git` names; an empty path if there is none."""
    line = _read_text(os.path.join(folder, ".git"), _MAX_PATH_BYTES)
    return os.path.join(folder, line.removeprefix("gitdir:").strip()) if line.startswith("gitdir:") else ""


def _is_repository(folder: str) -> bool:
    """Return whether Git would take a folder for the data of a repository."""
    head, objects = (_kind(os.path.join(folder, name)) for name in ("HEAD", "objects"))
    return head == "file" and objects == "folder"


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def _work_tree(repository: str) -> str | None:
    """Return the main work tree of the data folder of a repository; of a bare repository, the data folder.

    The `.git` of the work tree must lead to this repository, or a repository in a downloaded folder could
    name any folder. Returns `None` if it does not.
    """
    for line in _read_text(os.path.join(repository, "config"), _MAX_CONFIG_BYTES).splitlines():
        # Git writes this for the data of a submodule.
        name, _, value = line.partition("=")
        if name.strip().lower() == "worktree":
            top = real_folder(os.path.join(repository, value.strip()))
            return top if top is not None and _leads_to(top, repository) else None
    around = os.path.dirname(repository)
    return around if _leads_to(around, repository) else repository


def _leads_to(top: str, repository: str) -> bool:
    """Return whether the `.git` of a folder is a repository, or a file that names it."""
    marker = os.path.join(top, ".git")
    return _is_same_file(marker, repository) or _is_same_file(_data_folder(top), repository)


def _read_text(path: str, max_bytes: int) -> str:
    """Return the text of a small file; nothing if it cannot be read."""
    try:
        return os.fsdecode(files.read(path, max_bytes, follow_links=True))
    except (OSError, ValueError):
        return ""
