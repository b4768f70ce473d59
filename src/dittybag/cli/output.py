"""Output of commands: text for people, one JSON envelope for programs.

Data goes to standard output, everything else to standard error.
"""

from __future__ import annotations

import os
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec

from dittybag.cli.error_output import report, wants_json
from dittybag.cli.strict_options import JSON, takes
from dittybag.cli.whole_numbers import WholeNumber
from dittybag.domain.display import format_count, format_when
from dittybag.domain.text import one_line
from dittybag.domain.times import iso

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

    from dittybag.cli.table import Column
    from dittybag.domain.progress import ReportProgress

F = TypeVar("F", bound=Callable[..., Any])

#: Longer texts are cut when they are shown on one line.
_MAX_LENGTH: Final = 100


# Options


def json_option(function: F) -> F:
    """Let a command take --json. It applies to all output, so the command does not receive it."""
    return takes(function, JSON)


def limit_option(
    default: int, maximum: int = 1_000_000, help: str = "Maximum number of results."
) -> Callable[[F], F]:
    """Add --limit to a command."""
    return click.option(
        "--limit",
        metavar="N",
        type=WholeNumber(1, maximum),
        default=default,
        show_default=True,
        help=help,
    )


def paged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --limit and --all to a command, which receives a `limit`."""

    @wraps(function)
    def command(*arguments: Any, limit: int, everything: bool, **others: Any) -> Any:
        return function(*arguments, limit=sys.maxsize if everything else limit, **others)

    return limit_option(20)(
        click.option("--all", "everything", is_flag=True, help="Show all results.")(command)
    )


# Results


def print_json(data: Any) -> None:
    """Print the result of a command in the JSON envelope."""
    click.echo(msgspec.json.encode({"ok": True, "data": data}))


def print_result(data: Any, *lines: str) -> None:
    """Print the result of a command: lines for people, or `data` as JSON."""
    if wants_json():
        print_json(data)
        return
    for line in lines:
        click.echo(line)


def print_deleted(deleted: Sequence[dict[str, Any]], lines: Iterable[str]) -> None:
    """Print what was deleted, and how to restore it."""
    print_result({"deleted": deleted}, *lines)
    hint(f"to restore {'it' if len(deleted) == 1 else 'them'}, run: dittybag undo")


def hint(text: str) -> None:
    """Print what to do next, for people."""
    print_aside(f"hint: {text}")


def note(text: str) -> None:
    """Print what else is worth knowing, for people."""
    print_aside(f"note: {text}")


def print_aside(line: str) -> None:
    """Print a line for people to standard error."""
    if not wants_json():
        click.echo(line, err=True)


def print_list(
    data: Any,
    header: Sequence[str | Column],
    rows: Sequence[Sequence[str]],
    *,
    empty: Sequence[str] = (),
    **table: Any,
) -> None:
    """Print the result of a listing command: a table, or `data` as JSON.

    `empty`: what to say if there are no rows, and hints. See `print_table` for further arguments.
    """
    if wants_json():
        print_json(data)
    elif rows or not empty:
        from dittybag.cli.table import print_table

        print_table(header, rows, **table)
    else:
        click.echo(empty[0], err=True)
        for line in empty[1:]:
            hint(line)


def print_rest(shown: int, total: int) -> None:
    """Say how many results were left out by --limit."""
    if shown < total:
        print_aside(f"Showing {shown:,} of {total:,}; use --all to see the rest")


def print_lines(lines: Sequence[str], max_lines: int, rest: str) -> None:
    """Print lines. `rest` is the noun for those beyond `max_lines`, as in `more item`."""
    for line in lines[:max_lines]:
        click.echo(line)
    if len(lines) > max_lines:
        click.echo(f"and {format_count(len(lines) - max_lines, rest)}")


def confirm(question: str, *, yes: bool) -> bool:
    """Ask for confirmation unless `yes`; report an error if there is nobody to ask."""
    if yes:
        return True
    if wants_json() or not sys.stdin.isatty():
        report(
            "Confirmation is required", "use --yes to confirm, or --dry-run to preview", code="NOT_CONFIRMED"
        )
        return False
    return click.confirm(question, err=True)


# Widths


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


# Untrusted text


def clip_line(text: str, max_length: int = _MAX_LENGTH) -> str:
    """Return an untrusted text on one line, without control characters and cut to a maximum length."""
    line = terminal_safe(one_line(text, max_length + 1))
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


def echo_long(text: str) -> None:
    """Print a text and the end of its last line, in a pager if it is longer than the terminal."""
    import shutil

    text = text.removesuffix("\n")
    if sys.stdout.isatty() and text.count("\n") >= shutil.get_terminal_size().lines:
        # Quit if it fits on a screen after all, show colours, keep the screen.
        os.environ.setdefault("LESS", "FRX")
        click.echo_via_pager(text, color=not os.environ.get("NO_COLOR"))
    else:
        click.echo(text)


def write_text(content: str) -> None:
    """Print an untrusted text: byte for byte, but without control characters on a terminal."""
    if sys.stdout.isatty():
        echo_long(terminal_safe(content))
    else:
        click.echo(content.encode(), nl=False)


# Times and paths


def format_time(moment: int) -> str:
    """Format a time: on a terminal, relative within a week and otherwise a date; ISO 8601 elsewhere."""
    return format_when(moment, time.time_ns() // 1000) if sys.stdout.isatty() else iso(moment)


def format_path(path: str) -> str:
    """Format a path: on a terminal, with ~ for the home folder."""
    if not sys.stdout.isatty():
        return path
    from dittybag.files import display_path

    return display_path(path)


def print_diff(lines: Iterable[str], *, err: bool = False) -> None:
    """Print the lines of a unified diff of untrusted texts, in colours. `err`: to standard error."""
    colours = {"+": "green", "-": "red", "@": "cyan"}
    styled = [click.style(terminal_safe(line), fg=colours.get(line[:1])) for line in lines]
    if err:
        click.echo("\n".join(styled), err=True)
    elif styled:
        echo_long("\n".join(styled))


# Progress


@contextmanager
def progress() -> Iterator[ReportProgress]:
    """Show progress on a terminal; without a terminal, show nothing."""
    if not sys.stderr.isatty():
        yield lambda step, done=0, total=0, /: None
        return
    line = _ProgressLine()
    try:
        yield line.show
    finally:
        line.finish()


class _ProgressLine:
    """A bar for each step that has a total, one below the other; the names of other steps, in one place."""

    def __init__(self) -> None:
        self._step = ""
        self._bar: ProgressBar[int] | None = None

    def show(self, step: str, done: int = 0, total: int = 0, /) -> None:
        if step != self._step:
            self.finish()
            self._step = step
        if not total:
            import shutil

            self._write(clip_line(step, shutil.get_terminal_size().columns - 4))
            return
        if self._bar is None:
            self._bar = click.progressbar(length=total, label=step, file=sys.stderr)
        self._bar.update(done - self._bar.pos)

    def finish(self) -> None:
        if self._bar is not None:
            self._bar.render_finish()
        elif self._step:
            self._write("")
        self._step, self._bar = "", None

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()


def report_section(show: ReportProgress, verb: str, section: str, done: int, total: int) -> None:
    """Show the progress of an import or export, which counts each kind of data."""
    show(f"{verb} {section}", done, total)
