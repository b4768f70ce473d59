"""Reading text and files given to commands, and ending a command with an error."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from typing import Final, NoReturn

import click

from dittybag import files
from dittybag.cli.error_output import ExitStatus, report
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
    size = 0
    try:
        descriptor = sys.stdin.fileno() if source == STREAM else os.open(source, os.O_RDONLY)
        try:
            about = os.fstat(descriptor)
            size = about.st_size if stat.S_ISREG(about.st_mode) else 0
            return files.read_open(descriptor, size, max_bytes)
        finally:
            if source != STREAM:
                os.close(descriptor)
    except files.FileTooLarge:
        problem = size_problem(size, max_bytes) or f"Content must be at most {max_bytes} bytes, but has more"
        refuse(f"{label(source)}: {problem}")
    except (OSError, ValueError) as error:
        is_missing = isinstance(error, FileNotFoundError)
        refuse(
            f"{label(source)} could not be read: {getattr(error, 'strerror', None) or error}",
            status=ExitStatus.NOT_FOUND if is_missing else ExitStatus.REFUSED,
            code="NOT_FOUND" if is_missing else "REFUSED",
        )


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
