"""The progress of imports and exports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

#: Called with a kind of data, in the plural, the number processed so far, and that of all (0: unknown).
ProgressCallback = Callable[[str, int, int], object]

#: Number of entities to read at a time.
PAGE: Final = 100


class ProgressCounter:
    """Counts what was processed, and reports it to a callback."""

    def __init__(self, on_progress: ProgressCallback | None) -> None:
        #: How many there are of each kind, as far as that is known.
        self.totals: dict[str, int] = {}
        self.counts = {"prompts": 0, "resources": 0, "tasks": 0}
        self._on_progress = on_progress

    def begin(self, section: str) -> None:
        if self.counts[section]:
            # All of them were processed before: a source may be read twice.
            self.totals[section] = self.counts[section]
        self.counts[section] = 0

    def step(self, section: str) -> None:
        self.counts[section] += 1
        if self._on_progress is not None and self.counts[section] % PAGE == 0:
            self._on_progress(section, self.counts[section], self.totals.get(section, 0))
