"""Three servers on one PostgreSQL, with nginx in front of them as we deploy it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import IO, Final

from tests import databases
from tests.contracts.http_server_process import ReceivedResponse, send_request
from tests.databases import Server
from tests.fleet import nginx
from tests.wire import ROOT

SECONDS: Final = 10.0
SERVERS: Final = 3


def until(is_so: Callable[[], object], what: str, seconds: float = SECONDS) -> float:
    """Wait for a condition; how long that took."""
    begun = time.monotonic()
    while not is_so():
        assert time.monotonic() - begun < seconds, f"not within {seconds:g} s: {what}"
        # Only between two looks.
        time.sleep(0.02)
    return time.monotonic() - begun


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


class Door:
    """An address at which the workspace is served: a server's own, or nginx's."""

    def __init__(self, port: int) -> None:
        #: As tests of one server have it.
        self.address = ("127.0.0.1", port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.address[1]}/mcp"

    def connect(self) -> HTTPConnection:
        return HTTPConnection(*self.address, timeout=SECONDS)

    def get(self, path: str) -> ReceivedResponse:
        with closing(self.connect()) as connection:
            return send_request(connection, "GET", path, None, {})

    def is_ready(self) -> bool:
        try:
            return self.get("/readyz").status == 200
        except (OSError, HTTPException):
            return False


class Member(Door):
    """One server of the fleet, which can be killed and started again at the same address."""

    def __init__(self, database: str, folder: Path) -> None:
        super().__init__(free_port())
        self.log = folder / f"server-{self.address[1]}.log"
        self._surroundings = {
            **os.environ,
            "DITTYBAG_HOME": str(folder / "home"),
            "DITTYBAG_DATABASE_URL": database,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        host, port = self.address
        # What it says goes to a file: nobody reads along.
        with self.log.open("ab") as log:
            self.process = self._run("serve", "--http", f"{host}:{port}", "--auth", "tokens", log=log)

    def _run(self, *arguments: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "dittybag", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=ROOT,
            env=self._surroundings,
        )

    def wait_until_ready(self, seconds: float = SECONDS) -> float:
        """Wait until it serves; how long that took."""

        def is_ready() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            return self.is_ready()

        return until(is_ready, f"{self.url} is ready", seconds)

    def end(self, how: signal.Signals) -> int:
        """End it; its exit status."""
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(SECONDS)

    def command(self, *arguments: str) -> str:
        """What a command says that somebody gives beside it, on the same database."""
        done = subprocess.run(
            [sys.executable, "-m", "dittybag", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=self._surroundings,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


class Fleet:
    """The servers, what is in front of them and what is behind."""

    def __init__(self, database: Server, members: list[Member], folder: Path) -> None:
        self.database = database
        self.members = members
        self.front = Door(free_port())
        #: Where nginx notes which server has answered.
        self.log = folder / "access.log"

    def command(self, *arguments: str) -> str:
        return self.members[0].command(*arguments)

    def token(self, user: str, *options: str) -> str:
        return self.command("token", "create", "--user", user, "--scope", "write", *options)


@contextmanager
def running(folder: Path) -> Iterator[Fleet]:
    """A fleet, from now on until the end of the block."""
    with ExitStack() as stack:
        # A crash of it must lose nothing.
        database = stack.enter_context(databases.running("carried", durable=True))
        members = [Member(database.url(), folder) for _ in range(SERVERS)]
        fleet = Fleet(database, members, folder)
        for member in members:
            member.start()
            stack.callback(_kill, member)
        for member in members:
            member.wait_until_ready(30)
        addresses = [f"127.0.0.1:{member.address[1]}" for member in members]
        front = nginx.configure(folder, addresses, fleet.front.address[1])
        stack.enter_context(nginx.running(front))
        until(fleet.front.is_ready, "nginx answers")
        yield fleet


def _kill(member: Member) -> None:
    if member.process is not None:
        member.process.kill()
        member.process.wait(SECONDS)
