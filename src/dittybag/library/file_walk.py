"""Walk the files of a library or of its source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dittybag import files
from dittybag.library.relative_paths import GIT_FOLDER, MAX_PATH_DEPTH

#: Larger trees are not walked.
MAX_WALK_ENTRIES: Final = 100_000


def walk(root: files.AnyPath, *, limit: int = MAX_WALK_ENTRIES) -> Iterator[files.WalkedFile]:
    """Yield everything below `root`, without entering `.git` folders and folders that are nested too deep.

    Raises `OSError`, and `TooManyFiles` beyond `limit` entries.
    """
    return files.walk(root, enter=_is_entered, limit=limit)


def _is_entered(folder: files.WalkedFile) -> bool:
    return folder.name.lower() != GIT_FOLDER and folder.depth < MAX_PATH_DEPTH
