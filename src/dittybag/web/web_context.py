"""The dependencies of the web UI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from dittybag.domain.ports import Libraries
from dittybag.services.template_service import TemplateService
from dittybag.services.workspace import Workspace
from dittybag.web.library_checks import LibraryChecks
from dittybag.web.prompt_tags import TagCache
from dittybag.web.request_log import RequestLog


class ClientEntry(Struct, frozen=True, kw_only=True):
    """An MCP client, and how to connect it to this workspace."""

    #: Its name in `dittybag connect`.
    name: str
    title: str
    #: The configuration for HTTP and its file; without a file, it is a command to run.
    remote_file: str | None
    remote_config: str
    #: The configuration for stdio and its file, for a client on this machine.
    file: str | None = None
    config: str = ""
    is_installed: bool = False
    is_connected: bool = False
    #: Whether its entry of Dittybag does not work.
    is_broken: bool = False
    #: Why it cannot be connected, what is broken, or what connecting would replace.
    problem: str | None = None


class ConnectionFailed(Exception):
    """A client could not be connected; the message says why and what to do."""


class ClientConnections(Protocol):
    """Does what `dittybag connect` does, for the web UI."""

    @property
    def notice(self) -> str:
        """Why no client can be connected from here, for the user; empty if clients can be connected."""
        ...

    async def clients(self, project: str, address: str) -> Sequence[ClientEntry]:
        """Return all known clients with their configuration for this project and this MCP address."""
        ...

    async def connect(self, name: str, project: str) -> str:
        """Connect a client and return a message for the user. Raises `ConnectionFailed`."""
        ...


class WebContext(Struct, frozen=True, kw_only=True):
    """A workspace, and the services and settings that its web UI uses."""

    workspace: Workspace
    templates: TemplateService
    libraries: Libraries
    library_checks: LibraryChecks
    tags: TagCache
    #: The id of the project that opens first.
    project: int
    version: str
    read_only: bool = False
    #: Whether signing in requires a token.
    needs_token: bool = False
    #: Whether the server can print sign-in links.
    has_terminal: bool = True
    #: The actor of changes when no token is required.
    person: str = "somebody"
    connections: ClientConnections
    request_log: RequestLog
