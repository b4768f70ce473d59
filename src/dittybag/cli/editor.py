"""Editing a text in the user's editor until it can be stored."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

import click

from dittybag.cli.error_output import wants_json
from dittybag.cli.output import print_diff
from dittybag.cli.read_input import decode_text, read_bytes, refuse
from dittybag.domain.errors import (
    DittybagError,
    NotAllowed,
    Outdated,
    PromptNotFound,
    ResourceNotFound,
    StorageError,
)

T = TypeVar("T")

_NAME_LENGTH: Final = 60
_UNSAFE_IN_NAMES: Final = r"[^\w.-]+"
#: Begins the lines at the top of the file that say why a text could not be stored.
_COMMENT: Final = "# dittybag: "
_GIVE_UP: Final = "fix it and save again, or close the file without a change to give up"
#: Errors that no other text could avoid.
_FINAL: Final = (Outdated, StorageError, NotAllowed, PromptNotFound, ResourceNotFound)


class EditorFile:
    """A text in a private temporary file, which is removed once the text is stored."""

    def __init__(self, name: str, text: str, *, is_terminated: bool, ending: str = ".md") -> None:
        """`name`: what the file is named after. `text`: what is edited.

        `is_terminated`: whether the stored text ends with a newline. If not, one added is removed.
        """
        self._before = text
        self._is_terminated = is_terminated
        base = re.sub(_UNSAFE_IN_NAMES, "-", name).strip("-.")[:_NAME_LENGTH] or "text"
        try:
            # An editor may replace the file with one of other permissions; the folder protects it.
            self._folder = tempfile.mkdtemp(prefix="dittybag-")
            self.file = os.path.join(self._folder, f"{base}{ending}")  # noqa: PTH118
            descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(text.encode())
        except OSError as error:
            refuse(f"Cannot create a temporary file: {error.strerror}", "set TMPDIR to another folder")

    def edit(
        self,
        store: Callable[[str], T],
        *,
        max_bytes: int,
        versions: Callable[[str], tuple[str, str]] | None = None,
        resume: str = "",
    ) -> T:
        """Open the editor, and store its text with `store`. If that fails, the editor opens again.

        The error is then at the top of the file. Closing the file without a change gives up; the text is
        kept. `versions`: returns the text as it is stored now and the edited one, to show a conflict.
        `resume`: the command that continues with a kept file.
        """
        failed: str | None = None
        while True:
            text = self._open_editor(max_bytes)
            try:
                result = store(text)
            except DittybagError as error:
                if isinstance(error, _FINAL) or text == failed:
                    self._give_up(error, text, versions, resume)
                failed = text
                self._write_problem(text, str(error))
            except click.exceptions.Exit:
                self.discard()
                raise
            except BaseException:
                self._print_location()
                raise
            else:
                self.discard()
                return result

    def discard(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _open_editor(self, max_bytes: int) -> str:
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
        text = without_problems(decode_text(read_bytes(self.file, max_bytes), self.file))
        if not self._is_terminated:
            text = text.removesuffix("\n").removesuffix("\r")
        return text

    def _write_problem(self, text: str, problem: str) -> None:
        """Write why the text could not be stored at the top of the file."""
        lines = (*f"error: {problem}".splitlines(), _GIVE_UP)
        try:
            with open(self.file, "wb") as stream:  # noqa: PTH123
                stream.write("".join(f"{_COMMENT}{line}\n" for line in lines).encode() + text.encode())
        except OSError as error:
            refuse(f"Cannot write {self.file}: {error.strerror}", *self._location_hint())

    def _give_up(
        self,
        error: DittybagError,
        text: str,
        versions: Callable[[str], tuple[str, str]] | None,
        resume: str,
    ) -> NoReturn:
        if isinstance(error, Outdated) and versions is not None:
            _print_conflict(*versions(text))
        for hint in self._location_hint():
            error.add_note(hint)
            if resume and isinstance(error, Outdated):
                error.add_note(f"to continue with it, run: {resume} --draft {self.file}")
        raise error

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


def without_problems(text: str) -> str:
    """Return a text without the lines at its top that say why it could not be stored."""
    lines = text.splitlines(keepends=True)
    while lines and lines[0].startswith(_COMMENT.rstrip()):
        del lines[0]
    return "".join(lines)


def read_draft(file: str, max_bytes: int) -> str:
    """Read a text that was kept."""
    return without_problems(decode_text(read_bytes(file, max_bytes), file))


def _print_conflict(stored: str, own: str) -> None:
    """Print both versions of a text as a diff, to standard error."""
    if wants_json():
        return
    from dittybag.text_diff import unified_lines

    lines = unified_lines(stored.splitlines(), own.splitlines())
    print_diff(("--- as it is stored now", "+++ your text", *lines), err=True)
