"""Failures for people: what happened, then what to do; and an exit status for scripts."""

from __future__ import annotations

import os
import re
import sys
from enum import IntEnum
from typing import Final

from dittybag.config import SettingsError
from dittybag.domain.errors import Conflict, DittybagError, NotFound, StorageError, StorageFailed

_UNKNOWN: Final = "\N{REPLACEMENT CHARACTER}"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class ExitStatus(IntEnum):
    """What a command ended with."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    STORAGE = 5


def exit_status(error: DittybagError) -> ExitStatus:
    """The exit status for an error."""
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
    """How failures are told: in words, or in JSON to whoever asked for that."""

    as_json = False


def use_json_errors(*, as_json: bool) -> None:
    """Tell failures in JSON from now on."""
    _ErrorMode.as_json = as_json


def report(message: str, *hints: str, code: str = "REFUSED") -> None:
    """Say on standard error what went wrong, and what to do."""
    if _ErrorMode.as_json:
        import msgspec

        error = {"code": code, "message": message, "hints": hints}
        sys.stderr.write(msgspec.json.encode({"ok": False, "error": error}).decode() + "\n")
        return
    _write_line("error:", 31, message)
    for hint in hints:
        _write_line("hint:", 36, hint)


def _write_line(label: str, colour: int, words: str) -> None:
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        label = f"\x1b[{colour}m{label}\x1b[0m"
    # What somebody else wrote may be in the words, and a terminal would obey it.
    sys.stderr.write(f"{label} {_CONTROL.sub(_UNKNOWN, words)}\n")


def report_error(error: DittybagError, *hints: str) -> ExitStatus:
    """Report an error; its exit status."""
    words = str(error)
    if isinstance(error, StorageError):
        detail = f" ({error.problem})" if isinstance(error, StorageFailed) and error.problem else ""
        words = f"{error.where}: {words}{detail}"
    report(words, *hints, code=error.code)
    return exit_status(error)


def report_settings_error(error: SettingsError) -> ExitStatus:
    """Report settings that make no sense."""
    report(
        str(error),
        "dittybag --help lists the commands, and dittybag COMMAND --help their options",
        code="USAGE",
    )
    return ExitStatus.USAGE
