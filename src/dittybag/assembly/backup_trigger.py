"""Starts the automatic backup of a database after the first write of a day, in a process of its own.

A short command does not wait for it, a server spends none of its time on it, and it goes on if either ends.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from contextlib import suppress
from typing import Final

from dittybag import files
from dittybag.assembly.backup_names import BackupNames
from dittybag.config import Settings

_log = logging.getLogger("dittybag")

#: Seconds until the next attempt on the same day.
_RETRY_SECONDS: Final = 3600
#: The descriptor of the locked status file in the new process.
LOCK_DESCRIPTOR: Final = 3
#: Above the descriptors that the new process gets, so that none is replaced by another.
_HIGH_DESCRIPTOR: Final = 10

_PROGRAM: Final = """\
import sys
sys.path[:] = sys.argv[4:]
from dittybag.assembly.automatic_backups import main
main(*sys.argv[1:4])
"""


class BackupTrigger:
    """Notices the first write of a day."""

    def __init__(self, settings: Settings) -> None:
        self._database = os.path.abspath(settings.database)  # noqa: PTH100  # pathlib is slow to import
        self._home = settings.home
        self._names = BackupNames(settings.database, settings.home)
        self._next = 0.0

    def note_commit(self) -> None:
        """Start the backup of the day, unless there is one. Called in the thread of the writer."""
        now = time.time()
        if now < self._next:
            return
        self._next = now + _RETRY_SECONDS
        day = time.strftime("%Y-%m-%d", time.localtime(now))
        try:
            if os.path.lexists(self._names.file(day)):
                self._next = _next_midnight(now)
            else:
                self._start(day, now)
        except Exception as error:  # noqa: BLE001  # whatever it is, the write itself was successful
            _warn("Cannot start the automatic backup: %s", error)

    def _start(self, day: str, now: float) -> None:
        files.make_folders(self._names.folder)
        descriptor = os.open(
            self._names.status_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | files.NO_FOLLOW, 0o600
        )
        try:
            # The new process inherits the lock, and loses it when it ends, even if it is killed.
            if files.try_lock(descriptor) and not _was_tried(descriptor, day, now):
                self._spawn(descriptor, day)
        finally:
            os.close(descriptor)

    def _spawn(self, descriptor: int, day: str) -> None:
        import fcntl

        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH_DESCRIPTOR)
        arguments = (self._database, self._home, day, *filter(None, sys.path))
        try:
            process = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", "-c", _PROGRAM, *arguments],
                {},
                file_actions=[
                    # A client that waits for the end of its server's output must not wait for the backup.
                    *((os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)),
                    (os.POSIX_SPAWN_DUP2, high, LOCK_DESCRIPTOR),
                ],
                # Ctrl-C and the end of a client's server do not interrupt it.
                setpgroup=0,
            )
        finally:
            os.close(high)
        threading.Thread(target=self._log_end, args=(process,), name="dittybag-backup", daemon=True).start()

    def _log_end(self, process: int) -> None:
        """Wait for the end of the process, and log why there is no backup."""
        with suppress(ChildProcessError):
            _, status = os.waitpid(process, 0)
            if status:
                from dittybag.assembly.automatic_backups import read_status

                reason = read_status(self._names).error or "its process was ended"
                _warn("The automatic backup failed: %s", reason)


def _warn(message: str, reason: object) -> None:
    """Log a warning of a server. Commands have no log; `dittybag doctor` reports the reason."""
    if _log.hasHandlers():
        _log.warning(message, reason)


def _was_tried(descriptor: int, day: str, now: float) -> bool:
    """Whether the last attempt was on the same day and within the hour; if not, there is one now."""
    status = os.fstat(descriptor)
    if not status.st_size:
        os.write(descriptor, b"{}")
        return False
    tried = time.strftime("%Y-%m-%d", time.localtime(status.st_mtime))
    if tried == day and now - status.st_mtime < _RETRY_SECONDS:
        return True
    os.utime(descriptor)
    return False


def _next_midnight(now: float) -> float:
    year, month, day, *_ = time.localtime(now)
    return time.mktime((year, month, day + 1, 0, 0, 0, 0, 0, -1))
