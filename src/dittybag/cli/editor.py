"""Editing a text in the user's editor."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

import click

from dittybag.cli.error_output import wants_json
from dittybag.cli.output import print_diff
from dittybag.cli.read_input import decode_text, read_bytes, refuse, usage_error
from dittybag.domain.errors import DittybagError, Outdated

T = TypeVar("T")

_NAME_LENGTH: Final = 60
_UNSAFE_IN_NAMES: Final = r"[^\w.-]+"


def require_terminal(advice: str) -> None:
    """Exit with this advice if an editor could not be used."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        usage_error("No option was given, and there is no terminal for an editor", advice)


def edit_text(
    name: str,
    text: str,
    store: Callable[[str], T],
    *,
    max_bytes: int,
    resume: str,
    stored: Callable[[], str] | None = None,
    ending: str = ".md",
) -> T | None:
    """Open a text in the editor and store it with `store`. Returns `None` if it was not changed.

    The text is in a private temporary file, which is named after `name`, and is removed once the text is
    stored. If that fails, it is kept: `resume` is the command, up to the name of the file, that stores it.
    `stored`: returns the text as it is stored now, to show a conflict.
    """
    file = _write(name, text, ending)
    edited = text
    try:
        edited = _open_editor(file, max_bytes, is_terminated=text.endswith("\n"))
        result = None if edited == text else store(edited)
    except DittybagError as error:
        if isinstance(error, Outdated) and stored is not None:
            # It may have been deleted meanwhile.
            with suppress(DittybagError):
                _print_conflict(stored(), edited)
        error.add_note(f"your text is in {file}")
        error.add_note(f"to store it, run: {resume} {shlex.quote(file)}")
        raise
    except BaseException:
        if _is_changed(file, text):
            click.echo(f"hint: your text is in {file}", err=True)
        else:
            _remove(file)
        raise
    _remove(file)
    return result


def _write(name: str, text: str, ending: str) -> str:
    base = re.sub(_UNSAFE_IN_NAMES, "-", name).strip("-.")[:_NAME_LENGTH] or "text"
    try:
        # An editor may replace the file with one of other permissions; the folder protects it.
        file = os.path.join(tempfile.mkdtemp(prefix="dittybag-"), f"{base}{ending}")  # noqa: PTH118
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(text.encode())
    except OSError as error:
        refuse(f"Cannot create a temporary file: {error.strerror}", "set TMPDIR to another folder")
    return file


def _open_editor(file: str, max_bytes: int, *, is_terminated: bool) -> str:
    """Open the editor and return the text after it is closed; exit if the editor fails.

    `is_terminated`: whether the text ended with a newline. If not, one that the editor added is removed.
    """
    try:
        click.edit(filename=file)
    except (click.ClickException, ValueError) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        refuse(f"The editor failed: {message}", "set VISUAL or EDITOR to another editor")
    text = decode_text(read_bytes(file, max_bytes), file)
    return text if is_terminated else text.removesuffix("\n").removesuffix("\r")


def _is_changed(file: str, before: str) -> bool:
    try:
        with open(file, "rb") as stream:  # noqa: PTH123
            return stream.read() != before.encode()
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _remove(file: str) -> None:
    shutil.rmtree(os.path.dirname(file), ignore_errors=True)  # noqa: PTH120


def _print_conflict(stored: str, own: str) -> None:
    """Print both versions of a text as a diff, to standard error."""
    if wants_json():
        return
    from dittybag.text_diff import unified_lines

    lines = unified_lines(stored.splitlines(), own.splitlines())
    print_diff(("--- as it is stored now", "+++ your text", *lines), err=True)
