"""The automatic backups of a server: one after the first write of a day, in a thread."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Final

from dittybag import files
from dittybag.assembly.stored_backups import BackupFolder, has_automatic_backups
from dittybag.config import Settings
from dittybag.domain.errors import StorageError
from dittybag.storage.sqlite.backups import FileRefused, back_up

_log = logging.getLogger("dittybag")

#: This many automatic backups of a database are kept.
KEPT: Final = 7
#: Seconds until the next attempt on the same day.
_RETRY_SECONDS: Final = 3600


class DailyBackup:
    """Makes the backup of a day, unless another server has made it.

    A backup that the end of the server cuts off leaves an unfinished file, which the next one deletes.
    """

    def __init__(self, settings: Settings) -> None:
        self._database = settings.database
        self._folder = BackupFolder(settings)
        self._next = 0.0 if has_automatic_backups(settings) else float("inf")

    def note_commit(self) -> None:
        """Start the backup if it is due. Called in the thread of the writer."""
        now = time.time()
        if now < self._next:
            return
        self._next = now + _RETRY_SECONDS
        file = self._folder.of_day(time.strftime("%Y-%m-%d", time.localtime(now)))
        if os.path.lexists(file):
            self._next = _next_midnight(now)
            return
        thread = threading.Thread(target=self._make, args=(file,), name="dittybag-backup", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # The system cannot start a thread. The write itself was successful.
            _log.warning("Cannot start the automatic backup: %s", error)

    def _make(self, file: str) -> None:
        try:
            files.make_folders(self._folder.path)
            problem = self._folder.lack_of_room(self._database)
            if problem is None:
                back_up(self._database, file, force=False, report=lambda step, done=0, total=0, /: None)
                automatic = [backup.file for backup in self._folder.backups() if backup.is_automatic]
                for old in sorted(automatic)[:-KEPT]:
                    os.unlink(old)  # noqa: PTH108  # pathlib is slow to import
        except FileRefused as refused:
            # Another server may have been faster.
            reason = "; ".join((refused.reason, *refused.details))
            problem = None if refused.reason == "exists" else f"{refused.path}: {reason}"
        except (StorageError, OSError) as error:
            problem = str(error)
        if problem is not None:
            _log.warning("The automatic backup failed: %s", problem)


def _next_midnight(now: float) -> float:
    year, month, day, *_ = time.localtime(now)
    return time.mktime((year, month, day + 1, 0, 0, 0, 0, 0, -1))
