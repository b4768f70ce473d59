"""The log on standard error, which keeps nobody waiting: many clients never read it."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import deque
from typing import Final

from dittybag.domain.times import iso
from dittybag.protocol.current_request import current_request_id
from dittybag.protocol.jsonrpc import encode

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
                self._thread = threading.Thread(target=self._write, name="dittybag-log", daemon=True)
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


class _Words(logging.Formatter):
    """Lines for people."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the name it has there
        message = super().formatMessage(record)
        return f"{message} (request {request_id})" if (request_id := _request_id()) else message


class _Json(logging.Formatter):
    """Lines for programs."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": iso(int(record.created * 1_000_000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "request_id": _request_id(),
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return encode(line).decode()


def _request_id() -> str:
    """Of the request that is being handled; empty if it is none that came over HTTP."""
    return current_request_id.get().decode()


def log_patiently(*, access: bool = False) -> None:
    """From now on, warnings and errors go to standard error in this way.

    With `access`, so do all requests, and every line is JSON.
    """
    handler = PatientHandler()
    handler.setFormatter(_Json() if access else _Words())
    logging.getLogger().addHandler(handler)
    if access:
        requests = logging.getLogger("dittybag.access")
        requests.setLevel(logging.INFO)
        requests.propagate = False
        requests.addHandler(PatientHandler(logging.INFO))
