"""Reading text and files given to commands, and ending a command with an error."""

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

#: The file name for standard input or standard output.
STREAM: Final = "-"
#: Only this many characters of a name are compared with others.
_MAX_COMPARED: Final = 100


def text(value: str) -> str:
    """Parameter type of text options and arguments; rejects bytes that are not UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise click.BadParameter("not valid UTF-8.") from error
    return value


def refuse(
    message: str, *hints: str, status: ExitStatus = ExitStatus.REFUSED, code: str = "REFUSED"
) -> NoReturn:
    """Report an error and its hints, and exit."""
    report(message, *hints, code=code)
    raise click.exceptions.Exit(status)


def refuse_with(error: DittybagError, *hints: str) -> NoReturn:
    """Report an error and its hints, and exit with the status of the error."""
    raise click.exceptions.Exit(report_error(error, *hints))


def usage_error(message: str, *hints: str) -> NoReturn:
    """Report incorrect usage, and exit."""
    refuse(message, *hints, status=ExitStatus.USAGE, code="USAGE")


def read_text(source: str, max_bytes: int) -> str:
    """Read text from a file or standard input; exit if it has more than `max_bytes` bytes."""
    return decode_text(read_bytes(source, max_bytes), label(source))


def decode_text(data: bytes, name: str) -> str:
    """Decode UTF-8 bytes read from `name`, or exit."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        refuse(
            f"{name} is not UTF-8 text: invalid byte at offset {error.start}",
            "to store a binary file, use `dittybag resource add FILE`",
        )


def read_bytes(source: str, max_bytes: int) -> bytes:
    """Read a file or standard input; exit if it has more than `max_bytes` bytes."""
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
        refuse(f"{label(source)}: Content must be at most {max_bytes} bytes, but has more")
    return bytes(pieces)


def label(source: str) -> str:
    """Return a printable name for a file, whose name may not be UTF-8."""
    return "standard input" if source == STREAM else os.fsencode(source).decode(errors="replace")


def close_matches(wanted: str, names: Iterable[str]) -> list[str]:
    """Return at most three names similar to `wanted`."""
    from difflib import get_close_matches

    wanted = wanted[:_MAX_COMPARED].lower()
    by_lower = {name.lower(): name for name in names}
    close = get_close_matches(wanted, by_lower, 3, 0.6)
    inside = [name for name in by_lower if len(wanted) > 2 and wanted in name]
    return [by_lower[name] for name in dict.fromkeys([*close, *inside])][:3]


def suggestion(wanted: str, names: Iterable[str], otherwise: str) -> str:
    """Return a hint with similar names, or `otherwise` if there are none."""
    close = close_matches(wanted, names)
    return f"did you mean {' or '.join(close)}?" if close else otherwise
