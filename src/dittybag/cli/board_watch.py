"""The board of tasks that follows every change, until a key or a signal ends it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from rich.console import Group
from rich.live import Live
from rich.text import Text

from dittybag.cli.board_drawing import BoardDrawing, open_console
from dittybag.cli.colours import GREY
from dittybag.cli.task_options import local_now
from dittybag.domain.claims import MICROSECONDS
from dittybag.domain.tasks import TaskColumn
from dittybag.services.workspace import WorkspaceSession

#: In seconds: the board is drawn again this often, because due times pass.
_CLOCK_INTERVAL: Final = 60.0
_FOOTER: Final = f"color({GREY})"
_QUIT_KEYS: Final = frozenset(b"qQ")


async def watch_board(
    session: WorkspaceSession, find: Callable[[WorkspaceSession], Awaitable[list[TaskColumn]]]
) -> None:
    """Draw the board on the whole screen whenever a task changes, a claim lapses or the terminal resizes."""
    console, ended = open_console(), asyncio.Event()
    with (
        session.workspace.task_waiting.watching() as woken,
        _keys_and_signals(woken, ended),
        Live(console=console, screen=True, auto_refresh=False) as live,
    ):
        while not ended.is_set():
            # Before looking, so that no change is missed in between.
            woken.clear()
            columns = await find(session)
            lapse = await session.workspace.task_queue.next_lapse(session.caller)
            drawing = BoardDrawing(columns, local_now(), height=console.height - 1)
            live.update(Group(drawing, Text("q quits", style=_FOOTER)), refresh=True)
            seconds = _CLOCK_INTERVAL if lapse is None else min(_CLOCK_INTERVAL, lapse / MICROSECONDS + 0.01)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await woken.wait()


@contextmanager
def _keys_and_signals(woken: asyncio.Event, ended: asyncio.Event) -> Iterator[None]:
    """Set `ended` on `q`, Ctrl-C or SIGTERM, and `woken` also if the terminal resizes."""
    loop, keyboard = asyncio.get_running_loop(), sys.stdin.fileno()

    def end() -> None:
        ended.set()
        woken.set()

    def read_key() -> None:
        keys = os.read(keyboard, 64)
        if not keys:
            loop.remove_reader(keyboard)
        elif _QUIT_KEYS & set(keys):
            end()

    reactions = {signal.SIGINT: end, signal.SIGTERM: end, signal.SIGWINCH: woken.set}
    for number, react in reactions.items():
        loop.add_signal_handler(number, react)
    # Without a keyboard, Ctrl-C still ends it.
    before = termios.tcgetattr(keyboard) if sys.stdin.isatty() else None
    if before is not None:
        tty.setcbreak(keyboard)
        loop.add_reader(keyboard, read_key)
    try:
        yield
    finally:
        if before is not None:
            loop.remove_reader(keyboard)
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
        for number in reactions:
            loop.remove_signal_handler(number)
