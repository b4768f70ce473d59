"""`dittybag connect` for the web UI: list the clients on this machine, and connect one."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dittybag.protocol.lazy_asyncio import asyncio  # isort: skip  # first: it imports asyncio without TLS

from dittybag.assembly.store_factory import is_file
from dittybag.clients.client_errors import ClientFileError
from dittybag.clients.connector import (
    ConfigTarget,
    Launch,
    connect,
    connection_status,
    disconnect,
    is_installed,
)
from dittybag.clients.http_snippets import http_snippet
from dittybag.clients.install_links import install_link
from dittybag.clients.known_clients import CLIENTS, LocalMachine, McpClient
from dittybag.config import CONNECTED_PROFILE, DEFAULT_PROFILE, Settings
from dittybag.domain.projects import AUTOMATIC, DEFAULT_PROJECT
from dittybag.domain.text import one_line
from dittybag.web.web_context import ClientEntry, ConnectionFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NAME: Final = "dittybag"
#: Their clients work in the project of the folder that they are used in.
_FOLDER_PROFILES: Final = (CONNECTED_PROFILE, DEFAULT_PROFILE)
_DEMO: Final = (
    "This is the demo, which ends with Ctrl-C: it does not write to the configuration files of your clients. "
    "While it runs, you can connect a client with the lines below. To connect one to your own workspace, "
    "run dittybag connect in a terminal"
)
_MESSAGES: Final = {
    "connected": "{} is now connected",
    "updated": "{} is now connected to this workspace",
    "unchanged": "{} was already connected",
}


def program() -> tuple[str, tuple[str, ...]]:
    """The running program as a command that works from any folder, and its first arguments.

    A symbolic link to the program is not resolved: it stays valid when the program is upgraded.
    """
    started = sys.argv[0]
    if Path(started).name != "__main__.py" and (found := shutil.which(started)):
        return str(Path(found).absolute()), ()
    return sys.executable, ("-m", "dittybag")


def launch(settings: Settings, options: Sequence[str]) -> Launch:
    """Return how a client starts `dittybag serve` with these options."""
    # The client does not inherit the environment of this process.
    variables = {"DITTYBAG_HOME": settings.home} if settings.has_custom_home else {}
    command, prefix = program()
    return Launch(command, prefix, ("serve", *options), variables)


def serve_options(given: Mapping[str, str | None]) -> list[str]:
    """Return the options of `dittybag serve` that `dittybag connect` writes.

    `given`: the values of --workspace, --db, --project and --profile that were chosen. The profile of a
    contract has one store in every folder, as the contract's own server.
    """
    profile = given.get("--profile") or CONNECTED_PROFILE
    automatic = AUTOMATIC if profile in _FOLDER_PROFILES else None
    values = {
        "--workspace": given.get("--workspace"),
        "--db": given.get("--db"),
        "--project": given.get("--project") or automatic,
        "--profile": profile,
    }
    return [part for name, value in values.items() if value is not None for part in (name, value)]


def absolute_database(settings: Settings) -> str:
    """Return the database, whose path must not depend on the folder of a client."""
    database = settings.database
    return str(Path(database).absolute()) if is_file(database) else database


def local_machine() -> LocalMachine:
    """Return this machine. Raises `RuntimeError` and `OSError` if it has no home or current folder."""
    return LocalMachine(os.environ, sys.platform, Path.home(), Path.cwd())


class LocalConnections:
    """The MCP clients on this machine. See `dittybag.web.web_context.ClientConnections`."""

    def __init__(self, settings: Settings, *, is_local: bool) -> None:
        """`is_local`: whether users of the web UI are on this machine; others only see what to paste."""
        self._settings = settings
        can_write = is_local and not settings.is_demo and is_file(settings.database)
        self._machine = _machine() if can_write else None

    @property
    def notice(self) -> str:
        return _DEMO if self._settings.is_demo else ""

    async def clients(self, project: str, address: str) -> Sequence[ClientEntry]:
        def entries() -> list[ClientEntry]:
            return [self._entry(client, project, address) for client in CLIENTS.values()]

        return await asyncio.to_thread(entries)

    async def connect(self, name: str, project: str) -> str:
        if self.notice:
            raise ConnectionFailed(self.notice)
        client, target = self._known(name)
        launch = self._launch(project)
        try:
            result = await asyncio.to_thread(connect, target, launch, self._settings.home)
        except ClientFileError as error:
            raise _failed(error) from error
        return f"{_MESSAGES[result.state].format(client.title)}. Next: {client.next_step}."

    async def disconnect(self, name: str) -> str:
        client, target = self._known(name)
        try:
            result = await asyncio.to_thread(disconnect, target, self._settings.home)
        except ClientFileError as error:
            raise _failed(error) from error
        if result.state == "absent":
            return f"{client.title} was not connected"
        return f"{client.title} is no longer connected: restart it to end its running server"

    def _known(self, name: str) -> tuple[McpClient, ConfigTarget]:
        client = CLIENTS.get(name)
        if client is None or self._machine is None:
            raise ConnectionFailed("There is no client with this name on this machine")
        return client, _target(client, self._machine)

    def _entry(self, client: McpClient, project: str, address: str) -> ClientEntry:
        remote = http_snippet(client.name, address, needs_token=self._settings.auth != "off")
        machine = self._machine
        if machine is None:
            return ClientEntry(
                name=client.name,
                title=client.title,
                remote_file=remote.file,
                remote_config=remote.text,
            )
        launch = self._launch(project)
        target = _target(client, machine)
        status = connection_status(target, launch)
        problem = None
        if status.state == "unreadable":
            problem = f"The file cannot be read: {one_line(status.problem)}"
        elif status.broken:
            problem = "; ".join(
                f"The entry '{one_line(name)}' is broken: {one_line(reason, 500)}"
                for name, reason in status.broken.items()
            )
        elif status.state == "other":
            problem = "The entry 'dittybag' starts another program: remove it first"
        return ClientEntry(
            name=client.name,
            title=client.title,
            remote_file=remote.file,
            remote_config=remote.text,
            file=str(target.file),
            config=client.format.write("", _NAME, launch.entry(client)).strip("\n"),
            install_link=install_link(client.name, _NAME, launch.entry(client)),
            is_installed=is_installed(client, machine, self._settings.home),
            is_connected=status.state == "connected",
            is_broken=status.state == "broken",
            problem=problem,
        )

    def _launch(self, project: str) -> Launch:
        """How a client starts this program with the same database."""
        settings = self._settings
        given = {
            "--db": None if settings.is_default_database else absolute_database(settings),
            "--project": None if project == DEFAULT_PROJECT else project,
        }
        return launch(settings, serve_options(given))


def _failed(error: ClientFileError) -> ConnectionFailed:
    return ConnectionFailed(f"{one_line(str(error), 500)}: {error.advice}")


def _machine() -> LocalMachine | None:
    try:
        return local_machine()
    except (RuntimeError, OSError):
        return None


def _target(client: McpClient, machine: LocalMachine) -> ConfigTarget:
    target = ConfigTarget.resolve(client, "user", machine, _NAME)
    assert target is not None
    return target
