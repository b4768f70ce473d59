"""The log on standard error, which keeps nobody waiting: many clients never read it."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import deque
from typing import Final

#: What is logged faster than it is read is forgotten, the oldest first.
_MAX_LINES: Final = 1000
#: How long the end of the process waits for the last lines to be read.
_FLUSH_SECONDS: Final = 0.3


class PatientHandler(logging.Handler):
    """Writes in a thread of its own, which is started for the first line."""

    def __init__(self, level: int = logging.WARNING) -> None:
        super().__init__(level)
        self._lines: deque[str] = deque(maxlen=_MAX_LINES)
        self._more = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001  # as every handler: a log must not break what it reports on
            self.handleError(record)
            return
        with self._more:
            self._lines.append(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="satchel-log", daemon=True)
                self._thread.start()
                atexit.register(self.flush)
            self._more.notify_all()

    def _write(self) -> None:
        while True:
            with self._more:
                self._busy = False
                self._more.notify_all()
                self._more.wait_for(lambda: self._lines)
                self._busy = True
                lines = "".join(f"{line}\n" for line in self._lines).encode(errors="backslashreplace")
                self._lines.clear()
            try:
                while lines:
                    lines = lines[os.write(2, lines) :]
            except OSError:
                # Nobody can read it any more.
                return

    def flush(self) -> None:
        with self._more:
            self._more.wait_for(lambda: not self._lines and not self._busy, timeout=_FLUSH_SECONDS)


def log_patiently(*, access: bool = False) -> None:
    """From now on, warnings and errors go to standard error in this way; with `access`, all requests too."""
    logging.getLogger().addHandler(PatientHandler())
    if access:
        requests = logging.getLogger("satchel.access")
        requests.setLevel(logging.INFO)
        requests.propagate = False
        requests.addHandler(PatientHandler(logging.INFO))
