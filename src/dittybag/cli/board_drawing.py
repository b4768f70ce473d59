"""The board of tasks for a terminal, drawn with rich."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from rich.box import ROUNDED
from rich.console import Console, ConsoleOptions, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dittybag.cli.colours import AMBER, GREEN, GREY, TEAL, VIOLET
from dittybag.cli.output import clip_line
from dittybag.cli.task_output import PRIORITY_STYLES, format_due, task_style
from dittybag.domain.tasks import TITLE_LENGTH, TaskColumn, TaskListing

#: Columns of the board are side by side if each has at least this width.
_MIN_WIDTH: Final = 28
#: The border and the padding of a column take this much of its width, and the border this much of its height.
_FRAME: Final = 4
_BORDER: Final = 2
_COLOURS: Final = {"ready": GREEN, "doing": TEAL, "blocked": AMBER, "review": VIOLET, "done": GREY}
#: Maximum length of a name or a label on a card.
_FACT_LENGTH: Final = 40


def open_console() -> Console:
    """Return the console of standard output. Without colours, it has no styles at all, as tables."""
    return Console(color_system=None if os.environ.get("NO_COLOR") else "256", highlight=False)


class BoardDrawing:
    """Columns of tasks that fit the width of the console; see `rich.console.ConsoleRenderable`."""

    def __init__(self, columns: Sequence[TaskColumn], now: datetime, height: int | None = None) -> None:
        """`height`: the maximum number of lines; `None` for no maximum."""
        self._columns = columns
        self._now = now
        self._height = height

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        side_by_side = max(1, min(len(self._columns), options.max_width // _MIN_WIDTH))
        shown = self._columns
        if side_by_side < len(shown):
            shown = [column for column in shown if column.total] or shown[:1]
            side_by_side = min(side_by_side, len(shown))
        rows = [shown[first : first + side_by_side] for first in range(0, len(shown), side_by_side)]
        width = options.max_width // side_by_side

        def texts_of(row: Sequence[TaskColumn], room: int | None) -> list[Text]:
            return [self._column_text(column, console, width - _FRAME, room) for column in row]

        needs = [_BORDER + max(map(_count_lines, texts_of(row, None))) for row in rows]
        heights = needs if self._height is None else _share_lines(needs, self._height)
        for row, height in zip(rows, heights, strict=True):
            texts = texts_of(row, max(height - _BORDER, 1))
            grid = Table.grid()
            grid.add_row(
                *(_panel(column, text, width, height) for column, text in zip(row, texts, strict=True))
            )
            yield grid

    def _column_text(self, column: TaskColumn, console: Console, width: int, room: int | None) -> Text:
        """Return as many cards as there is room for, and the number of the others."""
        lines: list[Text] = []
        left = column.total
        for task in column.tasks:
            card = [line for part in self._card(task) for line in part.wrap(console, width)]
            gap = [Text()] if lines else []
            # The last line says how many are left.
            if room is not None and len(lines) + len(gap) + len(card) > room - (left > 1):
                break
            lines += gap + card
            left -= 1
        if left:
            lines.append(Text(f"+ {left:,} more", style=_style(fg=GREY)))
        return Text("\n").join(lines or [Text("No tasks", style=_style(fg=GREY))])

    def _card(self, task: TaskListing) -> Iterator[Text]:
        yield Text.assemble((f"{task.id} ", _style(fg=GREY)), clip_line(task.title, TITLE_LENGTH))
        parts = [Text(f"!{task.priority}", style=_style(**PRIORITY_STYLES.get(task.priority, {})))]
        if due := format_due(task, self._now):
            parts.append(Text(f"due {due}", style=_style(**task_style(task, self._now))))
        if task.waits_for and not task.ended:
            parts.append(Text(f"waits for {task.waits_for}", style=_style(fg=AMBER)))
        facts = (task.project, self._worker(task), *(f"#{label}" for label in task.labels))
        parts += [Text(clip_line(fact, _FACT_LENGTH), style=_style(fg=GREY)) for fact in facts if fact]
        yield Text(" · ", style=_style(fg=GREY)).join(parts)

    def _worker(self, task: TaskListing) -> str | None:
        """Return who holds a task, or else who is to do it."""
        if task.holder is None or task.held_until is None:
            return task.assignee
        has_lapsed = task.held_until <= self._now.timestamp() * 1_000_000
        return f"{task.holder} (lapsed)" if has_lapsed else task.holder


def _count_lines(text: Text) -> int:
    return text.plain.count("\n") + 1


def _share_lines(needs: Sequence[int], lines: int) -> list[int]:
    """Return how many lines each of several rows gets: those that need little get all that they need."""
    shares, left = [0] * len(needs), lines
    for done, row in enumerate(sorted(range(len(needs)), key=lambda row: needs[row])):
        shares[row] = min(needs[row], left // (len(needs) - done))
        left -= shares[row]
    return shares


def _panel(column: TaskColumn, text: Text, width: int, height: int) -> Panel:
    colour = _style(fg=_COLOURS[str(column.key)])
    title = Text(f"{str(column.key).capitalize()} {column.total:,}", style=f"{colour} bold")
    return Panel(
        text, title=title, title_align="left", border_style=colour, box=ROUNDED, width=width, height=height
    )


def _style(*, fg: int | None = None, bold: bool = False) -> str:
    """Return a click style as a style of rich."""
    return " ".join([*([f"color({fg})"] if fg is not None else []), *(["bold"] if bold else [])])
