"""Failures for people: what happened, then what to do; and an exit status for scripts."""

from __future__ import annotations

import sys
from enum import IntEnum

from satchel.config import SettingsError
from satchel.domain.errors import Conflict, NotFound, SatchelError, StorageError, StorageFailed


class Status(IntEnum):
    """What a command ended with."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    STORAGE = 5


def status_of(error: SatchelError) -> Status:
    """The exit status for an error."""
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return status
    return Status.REFUSED


_STATUSES: tuple[tuple[type[SatchelError], Status], ...] = (
    (NotFound, Status.NOT_FOUND),
    (Conflict, Status.CONFLICT),
    (StorageError, Status.STORAGE),
)


def report(message: str, *hints: str) -> None:
    """Say on standard error what went wrong, and what to do."""
    sys.stderr.write(f"error: {message}\n")
    for hint in hints:
        sys.stderr.write(f"hint: {hint}\n")


def fail(error: SatchelError) -> Status:
    """Report an error; its exit status."""
    if isinstance(error, StorageError):
        detail = f" ({error.problem})" if isinstance(error, StorageFailed) and error.problem else ""
        report(f"{error.where}: {error}{detail}")
    else:
        report(str(error))
    return status_of(error)


def misuse(error: SettingsError) -> Status:
    """Report settings that make no sense."""
    report(str(error), "satchel --help lists the commands, and satchel COMMAND --help their options")
    return Status.USAGE
