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


class Status(IntEnum):
    """What a command ended with."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    STORAGE = 5


def status_of(error: DittybagError) -> Status:
    """The exit status for an error."""
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return status
    return Status.REFUSED


_STATUSES: tuple[tuple[type[DittybagError], Status], ...] = (
    (NotFound, Status.NOT_FOUND),
    (Conflict, Status.CONFLICT),
    (StorageError, Status.STORAGE),
)


class _Voice:
    """How failures are told: in words, or in JSON to whoever asked for that."""

    as_json = False


def speak_json(*, as_json: bool) -> None:
    """Tell failures in JSON from now on."""
    _Voice.as_json = as_json


def report(message: str, *hints: str, code: str = "REFUSED") -> None:
    """Say on standard error what went wrong, and what to do."""
    if _Voice.as_json:
        import msgspec

        error = {"code": code, "message": message, "hints": hints}
        sys.stderr.write(msgspec.json.encode({"ok": False, "error": error}).decode() + "\n")
        return
    _tell("error:", 31, message)
    for hint in hints:
        _tell("hint:", 36, hint)


def _tell(label: str, colour: int, words: str) -> None:
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        label = f"\x1b[{colour}m{label}\x1b[0m"
    # What somebody else wrote may be in the words, and a terminal would obey it.
    sys.stderr.write(f"{label} {_CONTROL.sub(_UNKNOWN, words)}\n")


def fail(error: DittybagError, *hints: str) -> Status:
    """Report an error; its exit status."""
    words = str(error)
    if isinstance(error, StorageError):
        detail = f" ({error.problem})" if isinstance(error, StorageFailed) and error.problem else ""
        words = f"{error.where}: {words}{detail}"
    report(words, *hints, code=error.code)
    return status_of(error)


def misuse(error: SettingsError) -> Status:
    """Report settings that make no sense."""
    report(
        str(error),
        "dittybag --help lists the commands, and dittybag COMMAND --help their options",
        code="USAGE",
    )
    return Status.USAGE
