"""Where the automatic backups of a database are, and which databases have them."""

from __future__ import annotations

import os
import re
from typing import Final
from zlib import crc32

from dittybag.config import Settings
from dittybag.files import timestamped_names

_FOLDER: Final = "backups"
_BY_HAND: Final = "-by-hand-"


class BackupNames:
    """The names of the automatic backups of one database."""

    def __init__(self, database: str, home: str) -> None:
        path = os.path.realpath(database)
        folder, file = os.path.split(path)
        self.folder = os.path.join(home, _FOLDER)  # noqa: PTH118  # pathlib is slow to import
        #: The name of the database. Outside the data folder, others may have the same name, so it has a
        #: checksum of its path, too.
        self.stem = os.path.splitext(file)[0]  # noqa: PTH122
        if folder != os.path.realpath(home):
            self.stem = f"{self.stem}@{crc32(os.fsencode(path)):08x}"
        #: Says when the last backup was tried and which ones there are. It is locked meanwhile.
        self.status_file = os.path.join(self.folder, f"{self.stem}.json")  # noqa: PTH118

    def file(self, day: str) -> str:
        """Return the path of the backup of a day, such as 2026-11-18."""
        return os.path.join(self.folder, f"{self.stem}-{day}.db")  # noqa: PTH118

    def hand_made(self) -> str:
        """Return the path of a new backup that a person wants, which is never deleted."""
        start = os.path.join(self.folder, f"{self.stem}{_BY_HAND}")  # noqa: PTH118
        return next(name for name in timestamped_names(start, ".db") if not os.path.lexists(name))

    def is_hand_made(self, file: str) -> bool:
        """Whether a file has a name of `hand_made`."""
        pattern = rf"{re.escape(self.stem + _BY_HAND)}\d{{8}}T\d{{6}}Z(-\d+)?\.db"
        return re.fullmatch(pattern, file) is not None


def has_automatic_backups(settings: Settings) -> bool:
    """Whether writes with these settings start backups.

    Not for PostgreSQL, the demo and databases in the folder for temporary files.
    """
    database = settings.database
    if not settings.auto_backup or settings.read_only or settings.is_demo or "://" in database:
        return False
    folder = os.path.dirname(os.path.realpath(database))  # noqa: PTH120
    return folder == os.path.realpath(settings.home) or not any(
        os.path.join(folder, "").startswith(os.path.join(os.path.realpath(temporary), ""))  # noqa: PTH118
        for temporary in settings.temporary_folders
    )
