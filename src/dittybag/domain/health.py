"""What the checks of a workspace find, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Level = Literal["ok", "note", "warning", "error"]


class Finding(Struct, frozen=True):
    """The result of one check, and how to fix what it found."""

    level: Level
    topic: str
    message: str
    fix: str | None = None


class Fix(Struct, frozen=True):
    """A fix for one or several findings."""

    text: str
    #: The highest level of the findings.
    level: Level
    topics: list[str]


def fixes_of(findings: Iterable[Finding]) -> list[Fix]:
    """Return each fix once, those of errors first."""
    fixable = [finding for finding in findings if finding.fix and finding.level != "ok"]
    fixable.sort(key=lambda finding: ("error", "warning", "note").index(finding.level))
    found: dict[str, Fix] = {}
    for finding in fixable:
        fix = found.setdefault(finding.fix or "", Fix(finding.fix or "", finding.level, []))
        if finding.topic not in fix.topics:
            fix.topics.append(finding.topic)
    return list(found.values())


class StoredBackup(Struct, frozen=True):
    """A backup of the database in the data folder."""

    file: str
    bytes: int
    #: When it was made, in microseconds since 1970.
    made_at: int
    #: Whether it is deleted when there are newer ones.
    is_automatic: bool

    @property
    def name(self) -> str:
        return self.file.rpartition("/")[2]
