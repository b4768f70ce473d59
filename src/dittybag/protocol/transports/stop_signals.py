"""The signals that stop a server."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Final

from dittybag.protocol.lazy_asyncio import asyncio

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def stop_on_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` in the event loop when one of the signals arrives.

    Like `loop.add_signal_handler`, which loads `inspect` to check that `stop` is not a coroutine function.
    """
    receiver, sender = socket.socketpair()

    def on_signal() -> None:
        receiver.recv(64)
        stop()

    with receiver, sender, contextlib.ExitStack() as stack:
        sender.setblocking(False)  # noqa: FBT003
        # Signal handlers work only in the main thread, and not every event loop can watch sockets.
        with contextlib.suppress(NotImplementedError, ValueError):
            loop.add_reader(receiver, on_signal)
            stack.callback(loop.remove_reader, receiver)
            # Python writes the number of a signal to this socket, which wakes up the event loop.
            previous = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
            stack.callback(signal.set_wakeup_fd, previous)
            for stop_signal in STOP_SIGNALS:
                stack.callback(signal.signal, stop_signal, signal.signal(stop_signal, _do_nothing))
        yield


def _do_nothing(number: int, frame: object) -> None:
    """Replace the default action of a signal."""
