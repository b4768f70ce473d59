"""Error messages and hints on standard error, and the exit status of each error."""

from __future__ import annotations

import os
import re
import sys
from enum import IntEnum
from typing import Final

from dittybag.config import SettingsError
from dittybag.domain.errors import Conflict, DittybagError, NotFound, StorageError

#: Compiled on first use: most commands report no error.
_CONTROL: Final = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]"


class ExitStatus(IntEnum):
    """The exit statuses of commands."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    STORAGE = 5
    #: No task became ready in time.
    NONE_READY = 6


_STATUSES: Final[tuple[tuple[type[DittybagError], ExitStatus], ...]] = (
    (NotFound, ExitStatus.NOT_FOUND),
    (Conflict, ExitStatus.CONFLICT),
    (StorageError, ExitStatus.STORAGE),
)


def exit_status(error: DittybagError) -> ExitStatus:
    """Return the exit status for an error."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), ExitStatus.REFUSED)


class _OutputMode:
    """Whether results and errors are printed as text or as JSON."""

    is_json = False


def use_json(*, is_json: bool) -> None:
    """Choose whether results and errors are printed as JSON."""
    _OutputMode.is_json = is_json


def wants_json() -> bool:
    """Whether results and errors are printed as JSON."""
    return _OutputMode.is_json


def report(message: str, *hints: str, code: str = "REFUSED") -> None:
    """Print an error and its hints to standard error."""
    if wants_json():
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
    printable = re.sub(_CONTROL, "\N{REPLACEMENT CHARACTER}", message)
    sys.stderr.write(f"{label} {printable}\n")


def help_hint(command: str) -> str:
    """Return the hint to the help of a command."""
    return f"for help, run: {command} --help"


def report_error(error: DittybagError, *hints: str) -> ExitStatus:
    """Report an error with these hints and the notes on it, and return its exit status."""
    message = error.report if isinstance(error, StorageError) else str(error)
    report(message, *hints, *getattr(error, "__notes__", ()), code=error.code)
    return exit_status(error)


def report_settings_error(error: SettingsError, command: str = "dittybag") -> ExitStatus:
    """Report an invalid option or variable of a command and return the exit status for it."""
    report(str(error), *getattr(error, "__notes__", ()), help_hint(command), code="USAGE")
    return ExitStatus.USAGE
