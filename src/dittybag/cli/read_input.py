"""What commands are given: text that is text, and files that are not too large."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from typing import Final, NoReturn

import click

from dittybag.cli.error_output import ExitStatus, report, report_error
from dittybag.domain.errors import DittybagError
from dittybag.domain.prompts import size_problem

#: The name of a file that means standard input or standard output.
STREAM: Final = "-"
#: More of a name than this is not compared with others.
_MAX_COMPARED: Final = 100


def text(value: str) -> str:
    """The type of options and arguments that are text: shells hand over any bytes."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise click.BadParameter("it is not valid UTF-8.") from error
    return value


def refuse(
    message: str, *hints: str, status: ExitStatus = ExitStatus.REFUSED, code: str = "REFUSED"
) -> NoReturn:
    """Say what went wrong and what to do, and end the command."""
    report(message, *hints, code=code)
    raise click.exceptions.Exit(status)


def refuse_with(error: DittybagError, *hints: str) -> NoReturn:
    """Say what went wrong and what to do, and end the command with the error's own status."""
    raise click.exceptions.Exit(report_error(error, *hints))


def usage_error(message: str, *hints: str) -> NoReturn:
    """Say what makes no sense about how the command was called, and end it."""
    refuse(message, *hints, status=ExitStatus.USAGE, code="USAGE")


def read_text(source: str, max_bytes: int) -> str:
    """The text of a file, or of standard input; it has at most so many bytes."""
    return decode_text(read_bytes(source, max_bytes), label(source))


def decode_text(data: bytes, name: str) -> str:
    """What bytes say, which are from `where`."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        refuse(
            f"{name} is not UTF-8 text: the byte at {error.start} makes no sense",
            "dittybag resource add FILE keeps files of any kind",
        )


def read_bytes(source: str, max_bytes: int) -> bytes:
    """The bytes of a file, or of standard input; there are at most so many."""
    try:
        if source == STREAM:
            return _read_limited(sys.stdin.fileno(), source, max_bytes, close=False)
        file = os.open(source, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        return _read_limited(file, source, max_bytes, close=True)
    except (OSError, ValueError) as error:
        is_missing = isinstance(error, FileNotFoundError)
        refuse(
            f"{label(source)} could not be read: {getattr(error, 'strerror', None) or error}",
            status=ExitStatus.NOT_FOUND if is_missing else ExitStatus.REFUSED,
            code="NOT_FOUND" if is_missing else "REFUSED",
        )


def _read_limited(file: int, source: str, max_bytes: int, *, close: bool) -> bytes:
    with open(file, "rb", buffering=0, closefd=close) as stream:
        about = os.fstat(file)
        if stat.S_ISREG(about.st_mode) and (problem := size_problem(about.st_size, max_bytes)):
            refuse(f"{label(source)}: {problem}")
        pieces = bytearray()
        while piece := stream.read(min(1 << 16, max_bytes + 1 - len(pieces))):
            pieces += piece
    if len(pieces) > max_bytes:
        refuse(f"{label(source)}: Content must be at most {max_bytes} bytes, it has more")
    return bytes(pieces)


def label(source: str) -> str:
    """What to call a file, whose name may be no text."""
    return "standard input" if source == STREAM else os.fsencode(source).decode(errors="replace")


def close_matches(wanted: str, names: Iterable[str]) -> list[str]:
    """The names that somebody may have meant."""
    from difflib import get_close_matches

    wanted = wanted[:_MAX_COMPARED].lower()
    by_lower = {name.lower(): name for name in names}
    close = get_close_matches(wanted, by_lower, 3, 0.6)
    inside = [name for name in by_lower if len(wanted) > 2 and wanted in name]
    return [by_lower[name] for name in dict.fromkeys([*close, *inside])][:3]


def suggestion(wanted: str, names: Iterable[str], otherwise: str) -> str:
    """A hint for somebody who asked for what is not there."""
    close = close_matches(wanted, names)
    return f"did you mean {' or '.join(close)}?" if close else otherwise
