"""A picker for names at a terminal: fzf if it is installed, or a simple one of our own."""

from __future__ import annotations

import os
import select
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click
from msgspec import Struct

from dittybag.cli.output import clip_line, pad

_MAX_ROWS: Final = 12
#: How long the rest of an escape sequence may take; a lone Escape has none.
_ESCAPE_SECONDS: Final = 0.05
#: The exit status of fzf after Escape or Ctrl-C.
_FZF_INTERRUPTED: Final = 130

_ENTER: Final = ("\r", "\n")
_ERASE: Final = ("\x7f", "\b")
_UP: Final = ("\x1b[A", "\x1bOA", "\x10")
_DOWN: Final = ("\x1b[B", "\x1bOB", "\x0e", "\t")
_CLEAR: Final = ("\x15",)
#: Escape, Ctrl-C, Ctrl-D, and the end of the input.
_CANCEL: Final = ("\x1b", "\x03", "\x04", "")


class Choice(Struct, frozen=True):
    """A name that can be picked, and what to say about it."""

    name: str
    about: str = ""

    @property
    def line(self) -> str:
        return f"{self.name}\t{clip_line(self.about)}" if self.about else self.name


def can_pick() -> bool:
    """Whether somebody at a terminal can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def pick(title: str, choices: Sequence[Choice]) -> str:
    """Let the user pick a name. Raises `Abort` if none is picked."""
    fzf = shutil.which("fzf")
    chosen = _pick_with_fzf(fzf, title, choices) if fzf else _pick(title, choices)
    if chosen is None:
        raise click.Abort
    return chosen


def _pick_with_fzf(fzf: str, title: str, choices: Sequence[Choice]) -> str | None:
    import subprocess

    done = subprocess.run(  # noqa: S603  # names are its input, not its arguments
        [fzf, "--prompt", f"{title}> ", "--height", "40%", "--reverse", "--no-multi", "--delimiter", "\t"],
        input="".join(f"{choice.line}\n" for choice in choices).encode(),
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode == _FZF_INTERRUPTED or not done.stdout:
        return None
    return done.stdout.decode().splitlines()[-1].partition("\t")[0]


def _pick(title: str, choices: Sequence[Choice]) -> str | None:
    """Pick with the keyboard: type to filter, arrows to move, Enter to pick, Escape to leave."""
    typed, row = "", 0
    with _keys() as read_key:
        while True:
            found = _matching(choices, typed)
            row = max(min(row, len(found) - 1), 0)
            _draw(title, typed, found, row)
            key = read_key()
            if key in _CANCEL:
                return None
            if key in _ENTER and found:
                return found[row].name
            if key in _UP or key in _DOWN:
                row += -1 if key in _UP else 1
            elif key in _ERASE or key in _CLEAR:
                typed, row = typed[:-1] if key in _ERASE else "", 0
            elif key.isprintable():
                typed, row = typed + key, 0


def _matching(choices: Sequence[Choice], typed: str) -> list[Choice]:
    """Return the choices that have all typed words, those whose names start with them first."""
    words = typed.casefold().split()
    found = [choice for choice in choices if all(word in choice.line.casefold() for word in words)]
    return sorted(found, key=lambda choice: not choice.name.casefold().startswith(typed.casefold()))


def _draw(title: str, typed: str, found: Sequence[Choice], row: int) -> None:
    """Draw the line with what was typed and the choices below it, and return to that line."""
    size = shutil.get_terminal_size()
    rows = max(min(_MAX_ROWS, size.lines - 2), 1)
    first = max(row - rows + 1, 0)
    shown = found[first : first + rows]
    width = max((len(choice.name) for choice in shown), default=0)
    lines = []
    for number, choice in enumerate(shown, first):
        text = (
            f"{'>' if number == row else ' '} {pad(clip_line(choice.name), width)}  {clip_line(choice.about)}"
        )
        text = pad(text.rstrip(), min(len(text), size.columns - 1))
        lines.append(f"\x1b[7m{text}\x1b[0m" if number == row else text)
    if not found:
        lines.append("  No match")
    below = "".join(f"\r\n{line}" for line in lines)
    head = pad(f"{title}> {typed}", size.columns - 1).rstrip(" ")
    column = min(len(title) + 2 + len(typed), size.columns - 1)
    sys.stderr.write(f"\r\x1b[J{head}{below}\x1b[{len(lines)}A\r\x1b[{column}C")
    sys.stderr.flush()


@contextmanager
def _keys() -> Iterator[Any]:
    """Yield a function that reads a key. The terminal is restored in any case, also after a signal."""
    import signal
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    handlers = {number: signal.signal(number, _exit_on) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        tty.setraw(descriptor)
        yield lambda: _read_key(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        sys.stderr.write("\r\x1b[J")
        sys.stderr.flush()


def _exit_on(number: int, frame: Any) -> None:
    sys.exit(128 + number)


def _read_key(descriptor: int) -> str:
    """Read a key: a character, or an escape sequence."""
    data = os.read(descriptor, 1)
    if data == b"\x1b":
        while len(data) < 8 and select.select([descriptor], [], [], _ESCAPE_SECONDS)[0]:
            data += os.read(descriptor, 1)
            if data[-1:].isalpha() and data[-1:] != b"O":
                break
        return data.decode(errors="replace")
    # The first byte of a UTF-8 character says how many follow.
    for lead in (0xC0, 0xE0, 0xF0):
        if data and data[0] >= lead:
            data += os.read(descriptor, 1)
    return data.decode(errors="replace")
