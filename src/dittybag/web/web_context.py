"""The dependencies of the web UI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from dittybag.domain.health import Finding, StoredBackup
from dittybag.domain.imports import ImportResult
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
    #: Opens the client and lets the user add this configuration; `None` if the client has no such links.
    install_link: str | None = None
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

    async def disconnect(self, name: str) -> str:
        """Remove Dittybag from a client's configuration, and return a message. Raises `ConnectionFailed`."""
        ...


class MaintenanceFailed(Exception):
    """The data could not be backed up, checked, exported or imported; the message says why."""


class Maintenance(Protocol):
    """Does what `dittybag backup`, `doctor`, `export` and `import` do, for the web UI.

    One of them runs at a time, in a thread; a second one raises `MaintenanceFailed`.
    """

    @property
    def has_file(self) -> bool:
        """Whether the database is a SQLite file, which can be backed up and checked."""
        ...

    @property
    def makes_automatic_backups(self) -> bool: ...

    async def backups(self) -> Sequence[StoredBackup]:
        """Return the backups in the data folder, newest first."""
        ...

    async def back_up(self) -> StoredBackup:
        """Make a backup. Raises `MaintenanceFailed`."""
        ...

    async def backup_file(self, name: str) -> str | None:
        """Return the path of a backup in the data folder."""
        ...

    async def check(self) -> Sequence[Finding]:
        """Run all checks. Raises `MaintenanceFailed`."""
        ...

    async def export(self) -> str:
        """Export the workspace to a temporary file, which the caller deletes. Raises `MaintenanceFailed`."""
        ...

    async def keep_upload(self, name: str, content: bytes) -> str:
        """Keep an uploaded file for a while, and return the key for it. Raises `MaintenanceFailed`."""
        ...

    async def import_upload(self, key: str, project: str, actor: str, *, dry_run: bool) -> ImportResult:
        """Import an uploaded file. Items that exist already are skipped. Raises `MaintenanceFailed`."""
        ...

    async def update_libraries(self, name: str) -> str:
        """Update a library from its source, or all of them, and return a message for the user.

        Raises `MaintenanceFailed`.
        """
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
    maintenance: Maintenance
    request_log: RequestLog
