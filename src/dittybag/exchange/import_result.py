"""The result of an import, and the progress of imports and exports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.errors import Conflict

#: Called with a kind of data, in the plural, and the number processed so far.
ProgressCallback = Callable[[str, int], None]

#: Number of entities or changes to read at a time.
PAGE: Final = 100


class RenamedEntity(Struct, frozen=True):
    """An entity that was renamed during the import."""

    kind: str
    old: str
    new: str


def _zero_counts() -> dict[Kind, int]:
    return dict.fromkeys(ENTITY_TYPES, 0)


class ImportResult(Struct, kw_only=True):
    """The result of an import."""

    created: dict[Kind, int] = msgspec.field(default_factory=_zero_counts)
    replaced: dict[Kind, int] = msgspec.field(default_factory=_zero_counts)
    #: Entities that already exist, or that conflict with existing ones and were not imported.
    skipped: dict[Kind, int] = msgspec.field(default_factory=_zero_counts)
    renamed: list[RenamedEntity] = []
    conflicts: list[Conflict] = []
    #: Whether the workspace is now an exact copy of the exported one.
    exact: bool = False
    #: The number of imported changes of the history.
    changes: int = 0


class ProgressCounter:
    """Counts what was processed, and reports it to a callback."""

    def __init__(self, on_progress: ProgressCallback | None) -> None:
        self.counts = {"prompts": 0, "resources": 0, "tasks": 0, "changes": 0}
        self._on_progress = on_progress

    def begin(self, section: str) -> None:
        self.counts[section] = 0

    def step(self, section: str) -> None:
        self.counts[section] += 1
        if self._on_progress is not None and self.counts[section] % PAGE == 0:
            self._on_progress(section, self.counts[section])
