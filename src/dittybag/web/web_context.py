"""What the pages show, and what they work with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from dittybag.domain.ports import Libraries
from dittybag.services.template_service import TemplateService
from dittybag.services.workspace import Workspace
from dittybag.web.request_log import Calls


class ClientEntry(Struct, frozen=True, kw_only=True):
    """A program that speaks MCP, and how it gets to know this workspace."""

    #: As `dittybag connect` calls it.
    name: str
    title: str
    #: What to paste for a client that comes over HTTP, and into which file; nothing for what is run instead.
    remote_file: str | None
    remote_lines: str
    #: The same for a client of this machine, which starts a server of its own.
    file: str | None = None
    lines: str = ""
    is_installed: bool = False
    is_connected: bool = False
    #: What stands in the way, if anything does.
    problem: str | None = None


class ConnectionFailed(Exception):
    """A client could not be connected; the message says why, and what to do."""


class Connections(Protocol):
    """What `dittybag connect` does, for those who sit at this machine."""

    async def clients(self, project: str, address: str) -> Sequence[ClientEntry]:
        """All that are known, and how they get to know this project, or come to this address."""
        ...

    async def connect(self, name: str, project: str) -> str:
        """Connect a client; what was done, in words. Raises `ConnectionFailed`."""
        ...


class Site(Struct, frozen=True, kw_only=True):
    """A workspace as pages show it."""

    workspace: Workspace
    templates: TemplateService
    libraries: Libraries
    #: The project that people see first, by id.
    project: int
    version: str
    read_only: bool = False
    #: Whether visitors have to show a token.
    needs_token: bool = False
    #: Who acts where nobody has to say who they are.
    person: str = "somebody"
    connections: Connections
    calls: Calls
