"""Output of commands that import: problems, and notes for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from dittybag.cli.error_output import exit_status, report
from dittybag.cli.output import clip_line
from dittybag.domain.errors import DittybagError

#: At most this many problems or notes are printed.
_MAX_LINES: Final = 20
_MAX_LENGTH: Final = 300


def report_problems(
    error: DittybagError,
    lines: Sequence[str],
    hints: Sequence[str] = (),
    *,
    nothing: str = "Nothing was imported:",
) -> int:
    """Report why nothing was imported: one line or several. Returns the exit status."""
    if len(lines) > 1:
        more = [f"and {len(lines) - _MAX_LINES} more"] if len(lines) > _MAX_LINES + 1 else []
        lines = [nothing, *_indent([*lines[: _MAX_LINES + 1 - len(more)], *more])]
    else:
        lines = [clip_line(line, _MAX_LENGTH) for line in lines]
    report("\n".join(lines), *hints, code=error.code)
    return exit_status(error)


def print_notes(title: str, lines: Sequence[str]) -> None:
    """Print lines for people to standard error, if there are any."""
    if not lines:
        return
    click.echo(title, err=True)
    for line in _indent(lines[:_MAX_LINES]):
        click.echo(line, err=True)
    if len(lines) > _MAX_LINES:
        click.echo(f"  and {len(lines) - _MAX_LINES} more; --json prints all", err=True)


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"  {clip_line(line, _MAX_LENGTH)}" for line in lines]
