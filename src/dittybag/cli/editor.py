"""Editing a text in the user's editor."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Final, TypeVar

import click

from dittybag.cli.read_input import decode_text, read_bytes, refuse
from dittybag.domain.errors import DittybagError

T = TypeVar("T")

_NAME_LENGTH: Final = 60


class EditorFile:
    """A text in a private temporary file, which is removed once the text is stored."""

    def __init__(self, name: str, text: str = "") -> None:
        self._before = text
        try:
            # An editor may replace the file with one of other permissions; the folder protects it.
            self._folder = tempfile.mkdtemp(prefix="dittybag-")
            self.file = os.path.join(self._folder, f"{name[:_NAME_LENGTH]}.md")  # noqa: PTH118
            descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(text.encode())
        except OSError as error:
            refuse(f"Cannot create a temporary file: {error.strerror}", "set TMPDIR to another folder")

    def open_editor(self, max_bytes: int) -> str:
        """Open the editor and return the text after it is closed; exit if the editor fails."""
        try:
            click.edit(filename=self.file)
        except (click.ClickException, ValueError) as error:
            message = error.format_message() if isinstance(error, click.ClickException) else str(error)
            refuse(
                f"The editor failed: {message}",
                *self._location_hint(),
                "set VISUAL or EDITOR to another editor",
            )
        except BaseException:
            self._print_location()
            raise
        text = decode_text(read_bytes(self.file, max_bytes), self.file)
        if text.endswith("\n") and not self._before.endswith("\n"):
            # Editors add a newline at the end of the file; remove it if the text had none before.
            text = text.removesuffix("\n").removesuffix("\r")
        return text

    def store_with(self, work: Callable[[], T], *hints: str) -> T:
        """Run `work` to store the text, then remove the file; on an error, report where the text is."""
        try:
            result = work()
        except DittybagError as error:
            for hint in (*self._location_hint(), *hints):
                error.add_note(hint)
            raise
        except BaseException:
            self._print_location()
            raise
        self.discard()
        return result

    def discard(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _location_hint(self) -> tuple[str, ...]:
        """Return a hint that names the file, or remove the file if its text is unchanged."""
        try:
            with open(self.file, "rb") as stream:  # noqa: PTH123
                is_changed = stream.read() != self._before.encode()
        except FileNotFoundError:
            is_changed = False
        except OSError:
            is_changed = True
        if is_changed:
            return (f"your text is in {self.file}",)
        self.discard()
        return ()

    def _print_location(self) -> None:
        for hint in self._location_hint():
            click.echo(f"hint: {hint}", err=True)
