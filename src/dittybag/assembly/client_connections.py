"""What `dittybag connect` does, for the web UI: list the clients on this machine and connect one."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dittybag.protocol.lazy_tls import asyncio  # isort: skip  # first: it imports asyncio without TLS

from dittybag.assembly.store_factory import is_file
from dittybag.clients.client_errors import ClientError, Malformed
from dittybag.clients.connector import Launch, Target, connect, standing
from dittybag.clients.http_snippets import lines
from dittybag.clients.known_clients import CLIENTS, Client, Machine
from dittybag.clients.reversible_edits import spliced
from dittybag.config import DEFAULT_WORKSPACE, Settings
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.domain.text import one_line
from dittybag.web.web_context import ClientEntry, ConnectionFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME: Final = "dittybag"
_WORDS: Final = {
    "connected": "{} is connected now",
    "updated": "{} is connected to this workspace now",
    "unchanged": "{} was connected already",
}


def program() -> tuple[str, tuple[str, ...]]:
    """The program that is running, wherever the client is. A link to it outlives what it leads to."""
    started = sys.argv[0]
    if Path(started).name != "__main__.py" and (found := shutil.which(started)):
        return str(Path(found).absolute()), ()
    return sys.executable, ("-m", "dittybag")


class LocalConnections:
    """The MCP clients on this machine. See `dittybag.web.web_context.ClientConnections`."""

    def __init__(self, settings: Settings, *, is_local: bool) -> None:
        """`is_local`: whether those who ask sit at this machine; else they are only told what to paste."""
        self._settings = settings
        self._machine = _machine() if is_local and is_file(settings.database) else None

    async def clients(self, project: str, address: str) -> Sequence[ClientEntry]:
        def entries() -> list[ClientEntry]:
            return [self._entry(client, project, address) for client in CLIENTS.values()]

        return await asyncio.to_thread(entries)

    async def connect(self, name: str, project: str) -> str:
        client = CLIENTS.get(name)
        if client is None or self._machine is None:
            raise ConnectionFailed("No client of this machine goes by that name")
        return await asyncio.to_thread(self._connected, client, self._machine, project)

    def _connected(self, client: Client, machine: Machine, project: str) -> str:
        try:
            target = Target.of(client, "user", machine, _NAME)
            assert target is not None
            outcome = connect(target, self._launch(project), self._settings.home)
        except ClientError as error:
            raise ConnectionFailed(f"{one_line(str(error), 500)}: {error.advice}") from error
        words = [_WORDS[outcome.state].format(client.title), f"Next: {client.next_step}"]
        if outcome.has_previous:
            words.append(f"The entry it had before comes back with dittybag connect {client.name} --remove")
        return ". ".join([*words, ""]).strip()

    def _entry(self, client: Client, project: str, address: str) -> ClientEntry:
        remote = lines(client.name, address, needs_token=self._settings.auth != "off")
        machine = self._machine
        if machine is None:
            return ClientEntry(
                name=client.name, title=client.title, remote_file=remote.file, remote_config=remote.text
            )
        launch = self._launch(project)
        problem = None
        is_connected = False
        try:
            target = Target.of(client, "user", machine, _NAME)
            assert target is not None
            file = str(target.file)
            found = standing(target, launch)
            is_connected = found.state == "connected"
            if found.state == "unreadable":
                problem = one_line(found.problem)
            elif found.state == "other":
                problem = "It has an entry 'dittybag' that starts another program; connecting replaces it"
        except ClientError as error:
            file, problem = error.file, error.problem
        return ClientEntry(
            name=client.name,
            title=client.title,
            remote_file=remote.file,
            remote_config=remote.text,
            file=file,
            config=_written(client, launch),
            is_installed=client.is_found(machine),
            is_connected=is_connected,
            problem=problem,
        )

    def _launch(self, project: str) -> Launch:
        """How a client starts this program on the same data."""
        settings = self._settings
        arguments = ["serve"]
        usual = os.path.join(settings.home, f"{DEFAULT_WORKSPACE}.db")  # noqa: PTH118
        if settings.database != usual:
            arguments += ["--db", str(Path(settings.database).absolute())]
        if project != DEFAULT_PROJECT:
            arguments += ["--project", project]
        # The client will not have the variables of this process.
        variables = {"DITTYBAG_HOME": settings.home} if settings.has_custom_home else {}
        command, prefix = program()
        return Launch(command, prefix, tuple(arguments), variables)


def _machine() -> Machine | None:
    try:
        return Machine(os.environ, sys.platform, Path.home(), Path.cwd())
    except (RuntimeError, OSError):
        return None


def _written(client: Client, launch: Launch) -> str:
    """What a file of this client says that has nothing else in it."""
    try:
        put = client.format.put("", _NAME, launch.entry(client))
    except Malformed:
        return ""
    return spliced("", put.cuts)[0].strip("\n")
