"""HTTP server processes: start them, read their address, stop them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from typing import Final

from msgspec import Struct

from tests.forked_processes import ForkedProcess

#: Timeouts for the start and for a graceful shutdown.
START_SECONDS: Final = 20.0
END_SECONDS: Final = 15.0

EVERYTHING_COMMAND: Final = ("tests.conformance.everything_http",)
_ADDRESS: Final = re.compile(r"listening on (http://\S+)")


class ServerExit(Struct, frozen=True):
    """A server's exit status, and its standard error without the line with the address."""

    status: int
    output: str


class ServerNotListening(Exception):
    """A server did not start to listen."""


class ListeningServer:
    """A server process that reports its address on standard error."""

    def __init__(self, *command: str, env: Mapping[str, str] | None = None) -> None:
        self._process = ForkedProcess(
            *command,
            env=None if env is None else {**os.environ, **env},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._address: Future[str] = Future()
        self._output: list[str] = []
        self._reader = Thread(target=self._read_output, daemon=True)
        self._reader.start()

    def _read_output(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                match = _ADDRESS.search(line)
                if match and not self._address.done():
                    self._address.set_result(match[1])
                else:
                    self._output.append(line)
        if not self._address.done():
            self._address.set_exception(ServerNotListening(f"the server ended: {self.output}"))

    @property
    def address(self) -> str:
        """The server's URL. Waits until it listens. Raises `ServerNotListening`."""
        try:
            return self._address.result(START_SECONDS)
        except TimeoutError:
            raise ServerNotListening(
                f"the server did not listen within {START_SECONDS:.0f} seconds"
            ) from None

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def output(self) -> str:
        """The standard error so far, without the line with the address."""
        return "".join(self._output)

    def end(self) -> ServerExit:
        """Terminate the server and wait until it has ended."""
        self._process.terminate()
        try:
            status = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._reader.join()
        return ServerExit(status, self.output)


@contextmanager
def run_server(*command: str, env: Mapping[str, str] | None = None) -> Iterator[ListeningServer]:
    """Run `python -m` with this command until the end of the block. `env`: further variables."""
    server = ListeningServer(*command, env=env)
    try:
        yield server
    finally:
        server.end()


def dittybag_command(database: str) -> tuple[str, ...]:
    """Return the command that serves Dittybag on a free port."""
    return ("dittybag", "serve", "--http", "127.0.0.1:0", "--db", database)
