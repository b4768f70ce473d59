"""The files of the schema migrations, which have the same numbers for both databases."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from dittybag.storage.sql.sql_driver import SqlDriver

#: The newest schema version. A constant, so that a write does not read the folder.
NEWEST_SCHEMA: Final = 1

_FILE: Final = r"(\d{4})_(\w+)\.(?:sql|py)"


class Migration(NamedTuple):
    """SQL, or a Python file with a coroutine `migrate(driver)` for what SQL cannot do."""

    number: int
    name: str
    path: str
    text: str

    @property
    def checksum(self) -> int:
        """Stored in the database, so that one that another version of the file has made is noticed."""
        import zlib

        return zlib.crc32(self.text.encode())

    @property
    def function(self) -> Callable[[SqlDriver], Awaitable[None]] | None:
        """The coroutine of a Python file."""
        if self.path.endswith(".sql"):
            return None
        import runpy

        function: Callable[[SqlDriver], Awaitable[None]] = runpy.run_path(self.path)["migrate"]
        return function


def read_migrations(folder: str) -> list[Migration]:
    """Return every migration in a folder."""
    found = (match for name in os.listdir(folder) if (match := re.fullmatch(_FILE, name)))  # noqa: PTH208
    result = []
    for match in sorted(found, key=lambda match: match[0]):
        path = os.path.join(folder, match[0])  # noqa: PTH118  # pathlib is slow to import
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            result.append(Migration(int(match[1]), match[2], path, file.read()))
    return result


def are_same(recorded: Sequence[int], migrations: Sequence[Migration]) -> bool:
    """Whether a database was made by these migrations, or the first of them. `recorded`: its checksums."""
    known = len(migrations)
    return list(recorded[:known]) == [migration.checksum for migration in migrations[: len(recorded)]]
