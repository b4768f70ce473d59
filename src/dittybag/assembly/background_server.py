"""The server of a workspace that runs in the background, for `dittybag open`."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import time
from hashlib import sha256
from typing import Final
from urllib.parse import urlencode

from dittybag import files
from dittybag.assembly.client_connections import program
from dittybag.assembly.run_files import RunFile, database_id, log_file, running_servers
from dittybag.config import Settings, environment_with_database

_HOST: Final = "127.0.0.1"
#: A workspace gets the same one of these ports again, where the browser has kept its settings.
_PORTS: Final = range(20_000, 30_000)
_TIMEOUT_SECONDS: Final = 10.0
#: A server may take this long to start or to stop.
_WAIT_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.02
#: How long the server goes on without visits.
_IDLE: Final = "1h"


class ServerNotStarted(Exception):
    """The server in the background could not be started; the message says why."""


def find_server(settings: Settings, page: str) -> tuple[RunFile, str] | None:
    """Return a running server of this database that responds, and a link that opens a page of it."""
    for server in running_servers(settings):
        if (link := _new_link(server, page)) is not None:
            return server, link
    return None


def start_server(settings: Settings, page: str) -> tuple[RunFile, str]:
    """Start a server in the background; return it and a link. Raises `ServerNotStarted`."""
    log = log_file(settings)
    files.make_folders(os.path.dirname(log))  # noqa: PTH120  # pathlib is slow to import
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    command, prefix = program()
    address = f"{_HOST}:{_free_port(settings)}"
    try:
        process = subprocess.Popen(  # noqa: S603  # our own program
            [command, *prefix, "serve", "--http", address, "--project", "default", "--until-idle", _IDLE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=descriptor,
            # It goes on when the terminal is closed, and keeps no folder in use.
            start_new_session=True,
            cwd="/",
            env=environment_with_database(settings),
        )
    finally:
        os.close(descriptor)
    end = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < end:
        status = process.poll()
        for server in running_servers(settings):
            if server.pid == process.pid and (link := _new_link(server, page)) is not None:
                return server, link
        if status is not None:
            break
        time.sleep(_POLL_SECONDS)
    process.kill()
    raise ServerNotStarted(_last_line(log))


def stop_servers(settings: Settings) -> tuple[list[RunFile], list[RunFile]]:
    """Stop the servers that were started in the background; return them, and those that go on."""
    servers = running_servers(settings)
    stopped = [server for server in servers if server.is_temporary]
    for server in stopped:
        os.kill(server.pid, signal.SIGTERM)
    end = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < end and any(server in stopped for server in running_servers(settings)):
        time.sleep(_POLL_SECONDS)
    return stopped, [server for server in servers if not server.is_temporary]


def _new_link(server: RunFile, page: str) -> str | None:
    """Return a link to a page that signs in; `None` if the server does not respond as it should."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=_TIMEOUT_SECONDS)
    try:
        if server.needs_token:
            connection.request("GET", "/healthz")
            return f"{server.origin}{page}" if connection.getresponse().status == 200 else None
        headers = {"X-Owner-Secret": server.secret, "Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/sign-in/link", urlencode({"page": page}), headers)
        response = connection.getresponse()
        key = response.read(100).decode("ascii", "replace")
        return f"{server.origin}/sign-in?key={key}" if response.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _free_port(settings: Settings) -> int:
    """Return the port of this workspace, or 0 for any free one if another program uses it."""
    digest = sha256(database_id(settings.database).encode()).digest()
    port = _PORTS[int.from_bytes(digest[:4]) % len(_PORTS)]
    try:
        socket.create_server((_HOST, port)).close()
    except OSError:
        return 0
    return port


def _last_line(log: str) -> str:
    try:
        text = files.read(log, 1_000_000).decode(errors="replace")
    except OSError:
        text = ""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error: ")]
    return (errors or lines or ["it did not respond"])[-1].removeprefix("error: ")
