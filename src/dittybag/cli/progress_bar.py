"""A progress bar on one line of a terminal: how much is done, and how long the rest will take."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Final

#: Columns of the bar; with fewer than the minimum, there is none.
_BAR_COLUMNS: Final = 24
_MIN_BAR_COLUMNS: Final = 6
#: Seconds between two updates of the same step.
_INTERVAL_SECONDS: Final = 0.1
#: Before this, the time that is left is only a guess.
_ESTIMATE_SECONDS: Final = 1.0


class ProgressBar:
    """Shows the progress of one operation after the other on standard error."""

    def __init__(self) -> None:
        self._step = ""
        self._begun = self._shown = 0.0
        #: How much was done when the step began: an interrupted operation may be resumed.
        self._first = 0
        self._signs = _signs(sys.stderr.encoding)

    def show(self, step: str, done: int = 0, total: int = 0, /) -> None:
        """Show a step, with a bar if its total is known."""
        now = time.monotonic()
        if step != self._step:
            self._step, self._begun, self._first = step, now, done
        elif now - self._shown < _INTERVAL_SECONDS and done < total:
            return
        self._shown = now
        self._write(self._line(step, min(done, total), total, now) if total else step)

    def clear(self) -> None:
        """Clear the line."""
        self._write("")

    def _line(self, step: str, done: int, total: int, now: float) -> str:
        """Return the step with its numbers and, in the columns that are left, the bar."""
        numbers = f"{100 * done // total:>3} %  {done:,} of {total:,}{self._time_left(done, total, now)}"
        columns = min(_BAR_COLUMNS, _columns() - len(f"{step}   {numbers}"))
        if columns < _MIN_BAR_COLUMNS:
            return f"{step} {numbers}"
        full, empty = self._signs
        filled = columns * done // total
        return f"{step}  {full * filled}{empty * (columns - filled)} {numbers}"

    def _time_left(self, done: int, total: int, now: float) -> str:
        taken, progress = now - self._begun, done - self._first
        if taken < _ESTIMATE_SECONDS or progress <= 0 or done == total:
            return ""
        return f", {format_duration(taken * (total - done) / progress)} left"

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{text[: _columns()]}")
        sys.stderr.flush()


def _columns() -> int:
    """The columns of a line that does not wrap."""
    return shutil.get_terminal_size().columns - 1


def format_duration(seconds: float) -> str:
    """Format a time that is left, as in `8 s`, `2 min 5 s` or `1 h 20 min`."""
    minutes, rest = divmod(max(1, round(seconds)), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def _signs(encoding: str) -> tuple[str, str]:
    """The signs of the full and the empty part of a bar."""
    try:
        "━┄".encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return "#", "."
    return "━", "┄"
