"""A selector that handles the input of a stdio server itself, instead of reporting it to the event loop.

A server that was asleep runs with cold caches, so that every step between the system call and the handler
counts. See docs/decisions/0032-start-and-wake-ups.md.
"""

from __future__ import annotations

import logging
import math
import select
import selectors
import time
from collections.abc import Callable
from typing import Final

#: If the loop waited less than this for the last input, it polls before it sleeps ...
_QUICK_SECONDS: Final = 100e-6
#: ... for this long.
_SPIN_SECONDS: Final = 50e-6
#: After a poll without a result, this many quick inputs are not polled for.
_SKIPS_AFTER_MISS: Final = 64

_log = logging.getLogger("dittybag.protocol")

_Events = list[tuple[selectors.SelectorKey, int]]


class InputSelector(selectors.DefaultSelector):
    """The system's selector, with one more descriptor: the input."""

    def __init__(self) -> None:
        super().__init__()
        #: Returns whether nothing but input is expected. Polling would delay the threads of running requests.
        self.is_idle: Callable[[], bool] = lambda: True
        self._on_input: Callable[[], None] | None = None
        self._input = -1
        # The descriptor of the system's selector is ready when any of its descriptors is.
        self._poll = select.poll()
        self._poll.register(self.fileno(), select.POLLIN)
        self._is_quick = False
        #: The number of quick inputs to skip before polling again.
        self._skips_left = 0

    def watch_input(self, source: int, on_input: Callable[[], None]) -> None:
        """Call `on_input` in the event loop's thread whenever `source` has input or has ended."""
        self._on_input, self._input = on_input, source
        self._poll.register(source, select.POLLIN)

    def ignore_input(self) -> None:
        """Stop watching the input."""
        if self._on_input is not None:
            self._on_input = None
            self._poll.unregister(self._input)

    def select(self, timeout: float | None = None) -> _Events:
        """Wait for events. Those of the input are handled here, and not returned."""
        if self._on_input is None:
            return super().select(timeout)
        events: _Events = []
        is_due = timeout is not None and timeout <= 0
        for descriptor, _ in self._poll.poll(0) if is_due else self._wait(timeout):
            if descriptor != self._input:
                events = super().select(0)
                continue
            try:
                self._on_input()
            except Exception:  # noqa: BLE001  # the edge of the event loop, which would end
                _log.exception("cannot handle the input")
        return events

    def _wait(self, timeout: float | None) -> list[tuple[int, int]]:
        """Wait for a descriptor; poll for it first if the last input came quickly."""
        start = time.perf_counter()
        ready = self._spin(start) if self._is_quick and self.is_idle() else None
        if not ready:
            # Rounded up, so that the loop does not wake up before a timer is due.
            ready = self._poll.poll(None if timeout is None else math.ceil(timeout * 1000))
        self._is_quick = time.perf_counter() - start < _QUICK_SECONDS
        return ready

    def _spin(self, start: float) -> list[tuple[int, int]] | None:
        if self._skips_left:
            self._skips_left -= 1
            return None
        until = start + _SPIN_SECONDS
        while time.perf_counter() < until:
            if ready := self._poll.poll(0):
                return ready
        self._skips_left = _SKIPS_AFTER_MISS
        return None
