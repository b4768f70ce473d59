"""Servers that listen for HTTP, as processes that are started, found and ended."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from typing import Final

from msgspec import Struct

from tests.wire import ROOT

#: A server that does not listen by then will not, and one that still runs then does not end by itself.
START_SECONDS: Final = 20.0
END_SECONDS: Final = 15.0

FIXTURE: Final = ("tests.conformance.fixture",)
_ADDRESS: Final = re.compile(r"listening on (http://\S+)")


class End(Struct, frozen=True):
    """How a server ended: its exit status, and what it said besides its address."""

    status: int
    said: str


class ServerFailed(Exception):
    """A server did not come to listen."""


class Listener:
    """A server process, whose address is the first thing it says."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._address: Future[str] = Future()
        self._said: list[str] = []
        self._reader = Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                found = _ADDRESS.search(line)
                if found and not self._address.done():
                    self._address.set_result(found[1])
                else:
                    self._said.append(line)
        if not self._address.done():
            self._address.set_exception(ServerFailed(f"the server does not listen: {self.said}"))

    @property
    def address(self) -> str:
        """Where it listens, as soon as it does. Raises `ServerFailed`."""
        try:
            return self._address.result(START_SECONDS)
        except TimeoutError:
            raise ServerFailed(f"the server does not listen after {START_SECONDS:.0f} seconds") from None

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def said(self) -> str:
        """What it said so far, besides its address."""
        return "".join(self._said)

    def end(self) -> End:
        """Ask it to end, if it runs, and wait until it has."""
        self._process.terminate()
        try:
            status = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._reader.join()
        return End(status, self.said)


@contextmanager
def listening(*command: str) -> Iterator[Listener]:
    """A server, for as long as it is needed: `python -m` with this command."""
    listener = Listener(*command)
    try:
        yield listener
    finally:
        listener.end()


def dittybag(database: str) -> tuple[str, ...]:
    """The command of Dittybag itself, on a free port."""
    return ("dittybag", "serve", "--http", "127.0.0.1:0", "--db", database)
