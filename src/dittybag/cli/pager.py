"""Shows output that is longer than the terminal in a pager."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TextIO

from dittybag.cli.error_output import wants_json

#: Commands whose output may be long, and that ask nothing after they have started to print.
_COMMANDS: Final = {
    "": ("diff", "history", "search"),
    "library": ("check", "list", "show"),
    "project": ("list",),
    "prompt": ("list", "render", "show"),
    "resource": ("list", "show"),
    "tag": ("list", "show"),
    "task": ("graph", "list", "show"),
    "token": ("list",),
    "user": ("list",),
}
#: Options of less: quit if it fits on a screen, show colours, keep the screen.
_LESS: Final = "FRX"
_ESCAPES: Final = r"\x1b\[[0-9;]*m"


class _Paging:
    """Whether a pager may be used in this process."""

    is_off = False


def turn_off() -> None:
    """Use no pager (--no-pager)."""
    _Paging.is_off = True


@contextmanager
def paged_output(command: str) -> Iterator[None]:
    """Show what a command, such as `prompt show`, prints in a pager if it is longer than the terminal."""
    group, _, name = command.rpartition(" ")
    is_paged = name in _COMMANDS.get(group, ()) and not _Paging.is_off and not wants_json()
    pager = _pager_command() if is_paged and sys.stdout.isatty() else []
    if not pager:
        yield
        return
    stdout, stderr = sys.stdout, sys.stderr
    page = _Page(stdout, stderr, pager)
    sys.stdout, sys.stderr = page, _ErrorStream(page, stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = stdout, stderr
        page.finish()


def _pager_command() -> list[str]:
    """Return the pager as a list of words; empty for none."""
    if os.environ.get("TERM", "dumb") == "dumb":
        return []
    given = os.environ.get("DITTYBAG_PAGER", os.environ.get("PAGER"))
    if given is None:
        return ["less"]
    from shlex import split

    with suppress(ValueError):
        words = split(given)
        return [] if words in ([], ["cat"]) else words
    return []


class _Page(io.TextIOWrapper):
    """Keeps what is printed until it is known whether it fits on the screen."""

    def __init__(self, stdout: TextIO, stderr: TextIO, pager: list[str]) -> None:
        self._bytes = io.BytesIO()
        super().__init__(
            self._bytes, encoding=stdout.encoding, errors=stdout.errors, newline="\n", write_through=True
        )
        self._stdout = stdout
        self._stderr = stderr
        self._pager = pager
        #: What was reported while the page was already too long for the screen.
        self._deferred: list[str] = []

    def isatty(self) -> bool:
        return True

    def report(self, text: str) -> None:
        """Print a text to standard error, after what was printed before it."""
        if self._is_long():
            self._deferred.append(text)
            return
        self._print()
        self._stderr.write(text)
        self._stderr.flush()

    def finish(self) -> None:
        """Print what is left, or show it in the pager."""
        if not (self._is_long() and _run_pager(self._pager, self._bytes.getvalue())):
            self._print()
        self._stderr.write("".join(self._deferred))
        self._stderr.flush()

    def _is_long(self) -> bool:
        import shutil

        size = shutil.get_terminal_size()
        rows = 0
        text = self._bytes.getvalue().decode(self.encoding, "replace")
        for line in re.sub(_ESCAPES, "", text).split("\n"):
            rows += 1 + max(len(line) - 1, 0) // size.columns
            if rows > size.lines:
                return True
        return False

    def _print(self) -> None:
        with suppress(BrokenPipeError):
            self._stdout.buffer.write(self._bytes.getvalue())
            self._stdout.flush()
        self._bytes.seek(0)
        self._bytes.truncate()


class _ErrorStream:
    """Standard error, in order with the page."""

    def __init__(self, page: _Page, stream: TextIO) -> None:
        self._page = page
        self._stream = stream

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            # Click finds out in this way whether it is a text stream.
            raise TypeError("write() argument must be str")
        if text:
            self._page.report(text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _run_pager(command: list[str], data: bytes) -> bool:
    """Show a text in a pager and wait for its end. Returns whether the pager could be started."""
    import signal
    import subprocess

    environment = {"LESS": _LESS, "LESSCHARSET": "utf-8", **os.environ}
    try:
        # The pager that the user has chosen.
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)  # noqa: S603
    except OSError:
        return False
    # The pager handles Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.communicate(data)
    finally:
        signal.signal(signal.SIGINT, before)
    return True
