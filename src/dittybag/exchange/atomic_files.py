"""New files: there as a whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from dittybag.domain.errors import Conflict


def require_free(path: str) -> None:
    """Raises `Conflict` if there is a file of this name."""
    if os.path.lexists(path):
        raise Conflict(f"{path} is there already")


@contextmanager
def new_file(path: str, *, overwrite: bool) -> Iterator[BinaryIO]:
    """A file that gets its name when it is complete and on the disk. Raises `Conflict` and `OSError`."""
    if not overwrite:
        require_free(path)
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    descriptor, unfinished = tempfile.mkstemp(prefix=".dittybag-", dir=folder)
    try:
        with os.fdopen(descriptor, "wb", buffering=1024 * 1024) as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        if overwrite:
            os.replace(unfinished, path)  # noqa: PTH105
        else:
            _name(unfinished, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)  # noqa: PTH108
        raise
    _sync_folder(folder)


def _name(unfinished: str, path: str) -> None:
    """Give a file its name, if that is free."""
    try:
        os.link(unfinished, path)
    except FileExistsError as error:
        raise Conflict(f"{path} is there already") from error
    except OSError:
        # Not every disk has links.
        require_free(path)
        os.replace(unfinished, path)  # noqa: PTH105
        return
    os.unlink(unfinished)  # noqa: PTH108


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
