"""Output of commands: tables and colours for people, one JSON envelope for programs.

Data goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click
import msgspec

from dittybag.domain.text import one_line

#: Longer texts are cut when they are shown on one line.
_MAX_LENGTH: Final = 100
#: Minimum width of a column that can shrink.
_MIN_WIDTH: Final = 12

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(data: Any) -> None:
    """Print the result of a command in the JSON envelope."""
    click.echo(msgspec.json.encode({"ok": True, "data": data}))


def print_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    shrinkable: Sequence[int] = (),
    styles: Callable[[int], dict[str, Any]] = lambda row: {},
) -> None:
    """Print rows under a header.

    Columns in `right` are right-aligned; columns in `shrinkable` are cut if the terminal is too narrow.
    `styles` returns the click style of a row.
    """
    lines = [header, *rows]
    widths = [max(display_width(line[column]) for line in lines) for column in range(len(header))]
    if sys.stdout.isatty():
        import shutil

        _fit(widths, shrinkable, shutil.get_terminal_size().columns)
    for number, line in enumerate(lines):
        cells = [
            pad(cell, columns, right=column in right)
            for column, (cell, columns) in enumerate(zip(line, widths, strict=True))
        ]
        style = {"bold": True} if number == 0 else styles(number - 1)
        click.secho("  ".join(cells).rstrip(), **style)


def _fit(widths: list[int], shrinkable: Sequence[int], room: int) -> None:
    """Narrow the shrinkable columns, widest first, until the table fits or none can shrink further."""
    spare = sum(widths) + 2 * (len(widths) - 1) - room
    while spare > 0:
        widest = max(shrinkable, key=lambda column: widths[column], default=None)
        if widest is None or widths[widest] <= _MIN_WIDTH:
            return
        widths[widest] -= 1
        spare -= 1


def display_width(text: str) -> int:
    """Return the number of terminal columns that a text occupies."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Pad a text to a number of columns, or cut it if it is longer."""
    if display_width(text) > columns:
        while text and display_width(text) > columns - 1:
            text = text[:-1]
        text += "…"
    space = " " * (columns - display_width(text))
    return space + text if right else text + space


def clip_line(text: str, max_length: int = _MAX_LENGTH) -> str:
    """Return an untrusted text on one line, without control characters and cut to a maximum length."""
    line = one_line(text, max_length + 1)
    return line if len(line) <= max_length else f"{line[:max_length]}..."


def terminal_safe(text: str) -> str:
    """Replace the control characters of an untrusted text if standard output is a terminal."""
    if not sys.stdout.isatty():
        return text
    return "".join(
        letter
        if letter in "\n\t" or unicodedata.category(letter) not in ("Cc", "Cf", "Cs")
        else "\N{REPLACEMENT CHARACTER}"
        for letter in text
    )


@contextmanager
def progress() -> Iterator[Callable[[str], None] | None]:
    """Show progress on one line of a terminal and clear it at the end; `None` if there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    import shutil

    def show(text: str) -> None:
        columns = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[2K{text[:columns]}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
