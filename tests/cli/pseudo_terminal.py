"""Runs `dittybag` commands in a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from tests.forked_processes import ForkedProcess


def run_in_terminal(
    home: Path,
    *arguments: str,
    answers: Sequence[tuple[str, str | Callable[[str], str]]] = (),
    status: int = 0,
    stdout: int | None = None,
    columns: int = 100,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Run a command in a terminal, check its exit status and return its output.

    `answers` are pairs of a text to wait for and the input to type then. The input can also be a function of
    the output so far. `stdout` is a file descriptor that replaces standard output. `columns`: the width of
    the terminal.
    """
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DITTYBAG_") and name not in ("NO_COLOR", "COLUMNS", "VISUAL", "EDITOR")
    }
    process = ForkedProcess(
        "dittybag",
        *arguments,
        env=inherited
        | {"DITTYBAG_HOME": str(home), "DITTYBAG_AUTO_BACKUP": "off", "TERM": "xterm", "PAGER": "cat"}
        | dict(variables),
        stdin=terminal,
        stdout=terminal if stdout is None else stdout,
        stderr=terminal,
        in_terminal=True,
    )
    os.close(terminal)
    screen, pending = b"", list(answers)
    try:
        while select.select([controller], [], [], 30)[0]:
            try:
                chunk = os.read(controller, 1 << 16)
            except OSError:
                # The process has closed the terminal.
                break
            if not chunk:
                break
            screen += chunk
            if pending and pending[0][0].encode() in screen:
                answer = pending.pop(0)[1]
                typed = answer if isinstance(answer, str) else answer(screen.decode())
                os.write(controller, typed.encode())
        assert process.wait(30) == status, screen
    finally:
        process.kill()
        process.wait()
        os.close(controller)
    assert not pending, screen
    return screen.decode().replace("\r\n", "\n")


def strip_colours(screen: str) -> str:
    """Return the output of a terminal without colour sequences."""
    return re.sub(r"\x1b\[[0-9;]*m", "", screen)
