"""How far a long operation has got."""

from __future__ import annotations

from typing import Protocol


class ReportProgress(Protocol):
    """Called with the current step, and how much of it is done, if its total is known."""

    def __call__(self, step: str, done: int = 0, total: int = 0, /) -> object: ...
