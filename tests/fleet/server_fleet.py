"""A fleet for tests: three servers on one PostgreSQL behind nginx, configured as in `deploy/`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import IO, Final

from tests import postgres_servers
from tests.contracts.http_server_process import ReceivedResponse, send_request
from tests.fleet import nginx_process
from tests.forked_processes import ForkedProcess, run
from tests.postgres_servers import PostgresServer

TIMEOUT_SECONDS: Final = 10.0
SERVERS: Final = 3


def wait_until(condition: Callable[[], object], what: str, seconds: float = TIMEOUT_SECONDS) -> float:
    """Wait for a condition. Returns the elapsed seconds."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)
    return time.monotonic() - started


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


class ServerEndpoint:
    """An HTTP endpoint of the workspace: one server, or nginx."""

    def __init__(self, port: int) -> None:
        #: Host and port.
        self.address = ("127.0.0.1", port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.address[1]}/mcp"

    def connect(self) -> HTTPConnection:
        return HTTPConnection(*self.address, timeout=TIMEOUT_SECONDS)

    def get(self, path: str) -> ReceivedResponse:
        with closing(self.connect()) as connection:
            return send_request(connection, "GET", path, None, {})

    def is_ready(self) -> bool:
        try:
            return self.get("/readyz").status == 200
        except (OSError, HTTPException):
            return False


class FleetServer(ServerEndpoint):
    """A server of the fleet. It can be stopped and restarted at the same address."""

    def __init__(self, database: str, folder: Path) -> None:
        super().__init__(free_port())
        self.log = folder / f"server-{self.address[1]}.log"
        self._environment = {
            **os.environ,
            "DITTYBAG_HOME": str(folder / "home"),
            "DITTYBAG_DATABASE_URL": database,
            # Tests are faster than users.
            "DITTYBAG_RATE_LIMIT": "150/s",
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        host, port = self.address
        # Output goes to a file, because nobody reads a pipe.
        with self.log.open("ab") as log:
            self.process = self._run("serve", "--http", f"{host}:{port}", "--auth", "tokens", log=log)

    def _run(self, *arguments: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
        return ForkedProcess("dittybag", *arguments, stdout=log, stderr=log, env=self._environment)

    def wait_until_ready(self, seconds: float = TIMEOUT_SECONDS) -> float:
        """Wait until the server is ready. Returns the elapsed seconds."""

        def is_ready() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            return self.is_ready()

        return wait_until(is_ready, f"{self.url} is ready", seconds)

    def stop(self, signal_number: signal.Signals) -> int:
        """Send a signal and wait for the end of the process. Returns its exit status."""
        assert self.process is not None
        self.process.send_signal(signal_number)
        return self.process.wait(TIMEOUT_SECONDS)

    def command(self, *arguments: str) -> str:
        """Run a command on the same database. Returns its standard output."""
        done = run("dittybag", *arguments, env=self._environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


class Fleet:
    """The servers, their database and nginx."""

    def __init__(self, database: PostgresServer, servers: list[FleetServer], folder: Path) -> None:
        self.database = database
        self.servers = servers
        self.proxy = ServerEndpoint(free_port())
        #: The access log of nginx, which records the server of each request.
        self.log = folder / "access.log"

    def command(self, *arguments: str) -> str:
        return self.servers[0].command(*arguments)

    def token(self, user: str, *options: str) -> str:
        return self.command("token", "create", "--user", user, "--scope", "write", *options)


@contextmanager
def run_fleet(folder: Path) -> Iterator[Fleet]:
    """Run a fleet until the end of the block."""
    with ExitStack() as stack:
        # Durable, so that a crash loses no commit.
        database = stack.enter_context(postgres_servers.run_postgres("bundled", durable=True))
        servers = [FleetServer(database.url(), folder) for _ in range(SERVERS)]
        fleet = Fleet(database, servers, folder)
        for server in servers:
            server.start()
            stack.callback(_kill, server)
        for server in servers:
            server.wait_until_ready(30)
        addresses = [f"127.0.0.1:{server.address[1]}" for server in servers]
        configuration = nginx_process.configure(folder, addresses, fleet.proxy.address[1])
        stack.enter_context(nginx_process.run_nginx(configuration))
        wait_until(fleet.proxy.is_ready, "nginx is ready")
        yield fleet


def _kill(server: FleetServer) -> None:
    if server.process is not None:
        server.process.kill()
        server.process.wait(TIMEOUT_SECONDS)
