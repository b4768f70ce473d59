"""Error messages and hints on standard error, and the exit status of each error."""

from __future__ import annotations

import os
import re
import sys
from enum import IntEnum
from typing import Final

from dittybag.config import SettingsError
from dittybag.domain.errors import Conflict, DittybagError, NotFound, StorageError

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class ExitStatus(IntEnum):
    """The exit statuses of commands."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    STORAGE = 5


def exit_status(error: DittybagError) -> ExitStatus:
    """Return the exit status for an error."""
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return status
    return ExitStatus.REFUSED


_STATUSES: tuple[tuple[type[DittybagError], ExitStatus], ...] = (
    (NotFound, ExitStatus.NOT_FOUND),
    (Conflict, ExitStatus.CONFLICT),
    (StorageError, ExitStatus.STORAGE),
)


class _ErrorMode:
    """Whether errors are printed as text or as JSON."""

    as_json = False


def use_json_errors(*, as_json: bool) -> None:
    """Choose whether later errors are printed as JSON."""
    _ErrorMode.as_json = as_json


def report(message: str, *hints: str, code: str = "REFUSED") -> None:
    """Print an error and its hints to standard error."""
    if _ErrorMode.as_json:
        import msgspec

        error = {"code": code, "message": message, "hints": hints}
        sys.stderr.write(msgspec.json.encode({"ok": False, "error": error}).decode() + "\n")
        return
    _write_line("error:", 31, message)
    for hint in hints:
        _write_line("hint:", 36, hint)


def _write_line(label: str, colour: int, message: str) -> None:
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        label = f"\x1b[{colour}m{label}\x1b[0m"
    # The message may contain untrusted text, and a terminal would execute its control characters.
    sys.stderr.write(f"{label} {_CONTROL.sub(_REPLACEMENT, message)}\n")


def report_error(error: DittybagError, *hints: str) -> ExitStatus:
    """Report an error and return its exit status."""
    message = error.report if isinstance(error, StorageError) else str(error)
    report(message, *hints, code=error.code)
    return exit_status(error)


def report_settings_error(error: SettingsError) -> ExitStatus:
    """Report an invalid option or variable and return the exit status for it."""
    report(
        str(error),
        "run `dittybag --help` for the commands, or `dittybag COMMAND --help` for their options",
        code="USAGE",
    )
    return ExitStatus.USAGE
