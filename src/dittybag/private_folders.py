"""Folders that only their owner may enter."""

from __future__ import annotations

import os
from contextlib import suppress


def make_private_folders(folder: str) -> None:
    """Create a missing folder, and the folders that contain it, with access for their owner only.

    `os.makedirs` would give all but the last one the default permissions.
    """
    if os.path.isdir(folder):  # noqa: PTH112  # pathlib is slow to import
        return
    make_private_folders(os.path.dirname(folder))  # noqa: PTH120
    with suppress(FileExistsError):
        os.mkdir(folder, mode=0o700)  # noqa: PTH102
