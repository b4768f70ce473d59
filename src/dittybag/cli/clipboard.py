"""Copying a text to the clipboard, by a program of the desktop or by an escape sequence of the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Final

import click
from msgspec import Struct

from dittybag.cli.output import print_aside
from dittybag.cli.read_input import refuse
from dittybag.domain.display import format_count, format_size

#: Longer texts are not copied.
_MAX_BYTES: Final = 4 * 1024 * 1024
#: Terminals ignore longer escape sequences: xterm allows 100,000 characters of base64, as others do.
_MAX_SEQUENCE_BYTES: Final = 74_000
_SECONDS: Final = 5.0

copy_option: Final = click.option(
    "--copy", is_flag=True, help="Copy the text to the clipboard instead of printing it."
)


class _Program(Struct, frozen=True):
    """A program that copies its standard input to the clipboard."""

    command: tuple[str, ...]
    #: The variable that is set where it works; empty if it always does.
    variable: str = ""


_PROGRAMS: Final = (
    _Program(("pbcopy",)),
    _Program(("wl-copy",), "WAYLAND_DISPLAY"),
    _Program(("xclip", "-selection", "clipboard"), "DISPLAY"),
    _Program(("xsel", "--clipboard", "--input"), "DISPLAY"),
)
#: With -w, tmux passes the text on to the terminal.
_TMUX: Final = _Program(("tmux", "load-buffer", "-w", "-"), "TMUX")


def copy_text(text: str) -> None:
    """Copy a text to the clipboard and say how on standard error; exit if there is no way."""
    data = text.encode()
    if len(data) > _MAX_BYTES:
        refuse(
            f"The text is too long for the clipboard: {format_size(len(data))}",
            f"at most {format_size(_MAX_BYTES)} can be copied; leave out --copy",
        )
    way = _copy(data)
    if way is None:
        refuse(
            "No clipboard was found",
            "install wl-clipboard, xclip or xsel, or leave out --copy",
        )
    print_aside(f"Copied {format_count(len(text), 'character')} to the clipboard ({way})")


def _copy(data: bytes) -> str | None:
    """Copy a text, and return what has copied it; `None` if nothing could."""
    for program in _programs():
        if _run(program.command, data):
            return program.command[0]
    return "OSC 52" if _send_sequence(data) else None


def _programs() -> Iterator[_Program]:
    """Yield the programs that are installed and may work, in order of preference."""
    import shutil

    # Over SSH, the clipboard of that machine is not the one of the person who types.
    is_remote = bool(os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"))
    for program in (*(() if is_remote else _PROGRAMS), _TMUX):
        is_usable = not program.variable or os.environ.get(program.variable)
        if is_usable and shutil.which(program.command[0]):
            yield program


def _run(command: tuple[str, ...], data: bytes) -> bool:
    import subprocess

    try:
        # Some stay in the background until something else is copied, and keep their output open.
        done = subprocess.run(  # noqa: S603  # one of the programs above
            command,
            input=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _send_sequence(data: bytes) -> bool:
    """Ask the terminal to copy a text, also over SSH. It does not answer whether it has."""
    from base64 import b64encode

    if not sys.stderr.isatty():
        return False
    if len(data) > _MAX_SEQUENCE_BYTES:
        refuse(
            f"The text is too long for the terminal's clipboard: {format_size(len(data))}",
            f"at most {format_size(_MAX_SEQUENCE_BYTES)} can be copied by an escape sequence",
        )
    sys.stderr.write(f"\x1b]52;c;{b64encode(data).decode()}\a")
    sys.stderr.flush()
    return True
