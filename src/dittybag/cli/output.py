"""What commands print: tables and colours for people, one envelope of JSON for machines.

Data goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click
import msgspec

from dittybag.domain.text import one_line

#: More of a text than this is not shown on a line of its own.
_MAX_LENGTH: Final = 100
#: A column that gives way is at least so wide.
_MIN_WIDTH: Final = 12

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(data: Any) -> None:
    """Print what a command has to say, for machines."""
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

    Columns in `right` are aligned to the right; those in `shrinkable` are cut where a terminal is too narrow.
    `styles` are those of a row.
    """
    lines = [header, *rows]
    widths = [max(display_width(line[column]) for line in lines) for column in range(len(header))]
    if sys.stdout.isatty():
        _fit(widths, shrinkable, shutil.get_terminal_size().columns)
    for number, line in enumerate(lines):
        cells = [
            pad(cell, most, right=column in right)
            for column, (cell, most) in enumerate(zip(line, widths, strict=True))
        ]
        style = {"bold": True} if number == 0 else styles(number - 1)
        click.secho("  ".join(cells).rstrip(), **style)


def _fit(widths: list[int], shrinkable: Sequence[int], room: int) -> None:
    """Make columns narrower, the widest first, until all of them fit or none can give way."""
    spare = sum(widths) + 2 * (len(widths) - 1) - room
    while spare > 0:
        widest = max(shrinkable, key=lambda column: widths[column], default=None)
        if widest is None or widths[widest] <= _MIN_WIDTH:
            return
        widths[widest] -= 1
        spare -= 1


def display_width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """A text that takes exactly so many columns, cut if it is too long."""
    if display_width(text) > columns:
        while text and display_width(text) > columns - 1:
            text = text[:-1]
        text += "…"
    space = " " * (columns - display_width(text))
    return space + text if right else text + space


def clip_line(text: str, most: int = _MAX_LENGTH) -> str:
    """As much of a foreign text as fits, on one line and without control characters."""
    line = one_line(text, most + 1)
    return line if len(line) <= most else f"{line[:most]}..."


def terminal_safe(text: str) -> str:
    """A foreign text for a terminal: its lines and tabs, and nothing that a terminal would obey."""
    if not sys.stdout.isatty():
        return text
    return "".join(
        letter
        if letter in "\n\t" or unicodedata.category(letter) not in ("Cc", "Cf", "Cs")
        else "\N{REPLACEMENT CHARACTER}"
        for letter in text
    )


def format_count(number: int, one: str, many: str | None = None) -> str:
    """A number of things, in words."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


@contextmanager
def progress() -> Iterator[Callable[[str], None] | None]:
    """One line on a terminal that says how far it is, gone at the end."""
    if not sys.stderr.isatty():
        yield None
        return

    def show(text: str) -> None:
        columns = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[2K{text[:columns]}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
