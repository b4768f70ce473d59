"""`dittybag` in a process with a fault of the system, which occurs while a file exists.

`python -m tests.storage.sqlite.faulty_server FAULT FILE serve ...`
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import apsw


def fail_to_start_threads(switch: Path) -> None:
    """Let no thread start, as with a limit on processes."""
    start = threading.Thread.start

    def start_or_fail(self: threading.Thread) -> None:
        if switch.exists():
            raise RuntimeError("can't start new thread")
        start(self)

    threading.Thread.start = start_or_fail  # type: ignore[method-assign]


class _FailingFile(apsw.VFSFile):
    """A file whose writes succeed, and whose sync fails."""

    def __init__(self, switch: Path, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._switch = switch

    def xSync(self, flags: int) -> None:  # noqa: N802  # overrides apsw.VFSFile
        if self._switch.exists():
            raise apsw.IOError("disk I/O error")
        super().xSync(flags)


class _FailingVfs(apsw.VFS):
    """SQLite's own file system, except for the sync of a write-ahead log."""

    def __init__(self, switch: Path) -> None:
        self._switch = switch
        super().__init__("failing", base="unix", makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        is_log = flags[0] & apsw.SQLITE_OPEN_WAL
        return _FailingFile(self._switch, name, flags) if is_log else super().xOpen(name, flags)


FAULTS = {"threads": fail_to_start_threads, "sync": _FailingVfs}

if __name__ == "__main__":
    fault = FAULTS[sys.argv[1]](Path(sys.argv[2]))
    del sys.argv[1:3]
    from dittybag.__main__ import main

    sys.exit(main())
