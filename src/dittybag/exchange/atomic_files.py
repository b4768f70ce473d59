"""Files that are created completely or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from dittybag.domain.errors import Conflict


def require_absent(path: str) -> None:
    """Raise `Conflict` if a file with this name exists."""
    if os.path.lexists(path):
        raise Conflict(f"{path} already exists")


@contextmanager
def new_file(path: str, *, overwrite: bool) -> Iterator[BinaryIO]:
    """Open a temporary file that is renamed to `path` once it is complete and synced to disk.

    Raises `Conflict` and `OSError`.
    """
    if not overwrite:
        require_absent(path)
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    descriptor, temporary = tempfile.mkstemp(prefix=".dittybag-", dir=folder)
    try:
        with os.fdopen(descriptor, "wb", buffering=1024 * 1024) as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        if overwrite:
            os.replace(temporary, path)  # noqa: PTH105
        else:
            _rename_if_absent(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise
    _sync_folder(folder)


def _rename_if_absent(temporary: str, path: str) -> None:
    """Rename the temporary file, unless `path` exists. Raises `Conflict`."""
    try:
        os.link(temporary, path)
    except FileExistsError as error:
        raise Conflict(f"{path} already exists") from error
    except OSError:
        # Not every file system supports hard links.
        require_absent(path)
        os.replace(temporary, path)  # noqa: PTH105
        return
    os.unlink(temporary)  # noqa: PTH108


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
