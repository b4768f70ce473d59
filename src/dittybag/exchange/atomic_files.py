"""Files that are created completely or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from dittybag import files
from dittybag.domain.errors import Conflict


@contextmanager
def new_file(path: str, *, overwrite: bool) -> Iterator[BinaryIO]:
    """Open a file that gets the name `path` once it is complete. Raises `Conflict` and `OSError`."""
    try:
        with files.atomic_write(path, overwrite=overwrite) as file:
            yield file
    except FileExistsError as error:
        raise Conflict(f"{path} already exists") from error
