"""Writing a text in the editor of whoever sits here. What was written is never lost."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Final, TypeVar

import click

from dittybag.cli.read_input import decode_text, read_bytes, refuse, refuse_with
from dittybag.domain.errors import DittybagError

T = TypeVar("T")

_NAME_LENGTH: Final = 60


class EditorFile:
    """A text in a file of its own, which nobody else can read, until it is stored."""

    def __init__(self, name: str, text: str = "") -> None:
        self._before = text
        try:
            # Editors may replace the file by another one, with other permissions: the folder protects it.
            self._folder = tempfile.mkdtemp(prefix="dittybag-")
            self.file = os.path.join(self._folder, f"{name[:_NAME_LENGTH]}.md")  # noqa: PTH118
            descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(text.encode())
        except OSError as error:
            refuse(f"there is no room for a file to edit: {error.strerror}", "TMPDIR names another folder")

    def open_editor(self, max_bytes: int) -> str:
        """What it says after its author has closed the editor. Ends the command if that fails."""
        try:
            click.edit(filename=self.file)
        except (click.ClickException, ValueError) as error:
            words = error.format_message() if isinstance(error, click.ClickException) else str(error)
            refuse(
                f"the editor failed: {words}", *self._location_hint(), "VISUAL or EDITOR names another one"
            )
        except BaseException:
            self._print_location()
            raise
        text = decode_text(read_bytes(self.file, max_bytes), self.file)
        if text.endswith("\n") and not self._before.endswith("\n"):
            # Editors end every file with a newline. It was not there before, and nobody asked for it.
            text = text.removesuffix("\n").removesuffix("\r")
        return text

    def store_with(self, work: Callable[[], T], *hints: str) -> T:
        """Store it, and take the file away; if that is refused, say so and where the text is now."""
        try:
            result = work()
        except DittybagError as error:
            refuse_with(error, *self._location_hint(), *hints)
        except BaseException:
            self._print_location()
            raise
        self.discard()
        return result

    def discard(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _location_hint(self) -> tuple[str, ...]:
        """Where the text is, as a hint; nothing if it is only what was there before."""
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
