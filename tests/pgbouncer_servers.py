"""Real PgBouncers for tests, in transaction mode."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.postgres_servers import (
    START_SECONDS,
    USER,
    PostgresServer,
    command_prefix,
    free_port,
    own_by_account,
)
from tests.programs import PGBOUNCER
from tests.repetitions import IS_FULL

#: Whether the tests that run on PostgreSQL for its sake run through PgBouncer too.
IS_WANTED: Final = IS_FULL or os.environ.get("PGBOUNCER") == "1"

#: A role without special rights that clients may use, besides the superuser.
ROLE: Final = "clerk"

_CONFIGURATION: Final = """
[databases]
* = host=127.0.0.1 port={server_port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 500
server_lifetime = 3600
server_login_retry = 0.1
{more}
"""


class PgBouncer:
    """A PgBouncer in front of a PostgreSQL server."""

    def __init__(self, folder: Path, server: PostgresServer, connections: int, more: str) -> None:
        """`connections`: the maximum to the server. `more`: further lines of the configuration."""
        self._server = server
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        users = folder / "users.txt"
        users.write_text("".join(f'"{name}" ""\n' for name in (USER, ROLE)))
        self._file = folder / "pgbouncer.ini"
        text = _CONFIGURATION.format(
            server_port=server.port, port=self.port, connections=connections, users=users, more=more
        )
        self._file.write_text(text)
        own_by_account(folder, users, self._file)

    def url(self, database: str = "postgres", *, user: str = USER, **more: str) -> str:
        """Return a URL for clients of a pooler in transaction mode."""
        options = {"pooler": "transaction", **more}
        return self._server.url(database, user=user, **options).replace(
            f":{self._server.port}/", f":{self.port}/"
        )

    @property
    def direct(self) -> str:
        """The server behind it, for the option `direct` of a URL."""
        return f"127.0.0.1:{self._server.port}"

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command_prefix(), PGBOUNCER.require(), "-q", self._file],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self._process.poll() is None, (self._folder / "log").read_text()
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.01)
        raise AssertionError("PgBouncer did not start: " + (self._folder / "log").read_text())

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None


@contextmanager
def run_pgbouncer(server: PostgresServer, *, connections: int = 20, more: str = "") -> Iterator[PgBouncer]:
    """Run a PgBouncer in front of a server until the end of the block."""
    PGBOUNCER.require()
    folder = Path(tempfile.mkdtemp(prefix="pgbouncer-"))
    pooler = PgBouncer(folder, server, connections, more)
    try:
        pooler.start()
        yield pooler
    finally:
        pooler.stop()
        shutil.rmtree(folder, ignore_errors=True)
