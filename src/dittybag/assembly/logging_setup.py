"""Logging to standard error in a background thread, because many clients never read it."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import Iterable
from typing import Final

from dittybag.domain.times import iso
from dittybag.protocol.current_request import current_request_id
from dittybag.protocol.jsonrpc import encode

#: Maximum number of unwritten lines; beyond it, the oldest are dropped.
_MAX_LINES: Final = 1000
#: At exit, the process waits this long for the last lines to be written.
_FLUSH_SECONDS: Final = 0.3


class BackgroundWriter:
    """Writes lines to standard error in a background thread, started with the first line."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_MAX_LINES)
        self._more = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = False

    def write(self, lines: Iterable[str]) -> None:
        with self._more:
            self._lines.extend(lines)
            if self._thread is None:
                self._start()
            self._more.notify_all()

    def _start(self) -> None:
        thread = threading.Thread(target=self._write, name="dittybag-log", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # The system cannot start a thread. The next line tries again.
            return
        self._thread = thread
        atexit.register(self.flush)

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
                # The other end is closed.
                return

    def flush(self) -> None:
        with self._more:
            self._more.wait_for(lambda: not self._lines and not self._busy, timeout=_FLUSH_SECONDS)


class BackgroundLogHandler(logging.Handler):
    """A log handler that writes in a background thread."""

    def __init__(self, level: int = logging.WARNING) -> None:
        super().__init__(level)
        self._writer = BackgroundWriter()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001  # like every handler: logging must not break the program
            self.handleError(record)
            return
        self._writer.write([line])

    def flush(self) -> None:
        self._writer.flush()


class _TextFormatter(logging.Formatter):
    """Formats lines as text, with the request id."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # overrides logging.Formatter
        message = super().formatMessage(record)
        return f"{message} (request {request_id})" if (request_id := _request_id()) else message


class _JsonFormatter(logging.Formatter):
    """Formats lines as JSON."""

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
    """The id of the current HTTP request; empty outside of one."""
    return current_request_id.get().decode()


def log_to_stderr(*, access: bool = False) -> BackgroundWriter | None:
    """Log warnings and errors to standard error.

    With `access`, write every line as JSON, and return a writer for the access log.
    """
    handler = BackgroundLogHandler()
    handler.setFormatter(_JsonFormatter() if access else _TextFormatter())
    logging.getLogger().addHandler(handler)
    return BackgroundWriter() if access else None
