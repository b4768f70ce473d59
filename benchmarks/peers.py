"""Other MCP servers to compare with, and floors: servers that do the least possible.

Every one has a tool that returns its argument. The versions are pinned.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

from msgspec import Struct
from tests.interop.environments import NODE, ROOT, Environment, install, python

SERVERS: Final = Path(__file__).parent / "servers"
CACHE: Final = ROOT / ".cache" / "benchmarks"


class PeerEnvironment(Environment, frozen=True):
    """The environment of another server, separate from those of the test clients."""

    @property
    def home(self) -> Path:
        return CACHE / self.name


PYTHON_SDK: Final = PeerEnvironment("python-sdk", "the MCP Python SDK", {"mcp": "2.3.0"}, "python")
# 4.1.3 and 4.1.4 require certifi>=2026.10.19, which does not install everywhere.
FASTMCP: Final = PeerEnvironment("fastmcp", "FastMCP", {"fastmcp": "4.1.2"}, "python")
TYPESCRIPT_1: Final = PeerEnvironment(
    "typescript-1", "the MCP TypeScript SDK 1", {"@modelcontextprotocol/sdk": "1.32.2"}, "node"
)
TYPESCRIPT_2: Final = PeerEnvironment(
    "typescript-2", "the MCP TypeScript SDK 2", {"@modelcontextprotocol/server": "2.4.0"}, "node"
)


class Peer(Struct, frozen=True):
    """A server to compare with; a floor has no environment."""

    title: str
    server: str
    environment: Environment | None = None
    #: Whether it has an access log, over HTTP.
    logs: bool = False

    def command(self, *arguments: str) -> list[str]:
        """Install the server, and return its command."""
        if self.environment is None:
            return [sys.executable, str(SERVERS / self.server), *arguments]
        install(self.environment)
        if self.environment.language == "python":
            return [str(python(self.environment)), str(SERVERS / self.server), *arguments]
        # Node resolves packages relative to the program.
        program = self.environment.home / self.server
        shutil.copyfile(SERVERS / self.server, program)
        return [str(NODE), str(program), *arguments]


#: A client.
AIOHTTP: Final = PeerEnvironment("aiohttp", "aiohttp", {"aiohttp": "3.14.3"}, "python")
STDIO_PEERS: Final = (
    Peer("Python SDK 2.3.0", "python_sdk.py", PYTHON_SDK),
    Peer("FastMCP 4.1.2", "fastmcp_server.py", FASTMCP),
    Peer("TypeScript SDK 1.32.2", "typescript_sdk_1.mjs", TYPESCRIPT_1),
    Peer("TypeScript SDK 2.4.0", "typescript_sdk_2.mjs", TYPESCRIPT_2),
    Peer("floor: asyncio loop", "baseline_asyncio.py"),
    Peer("floor: blocking loop", "baseline_stdio.py"),
)
HTTP_PEERS: Final = (
    Peer("Python SDK 2.3.0 on uvicorn", "python_sdk_http.py", PYTHON_SDK, logs=True),
    Peer("FastMCP 4.1.2 on uvicorn", "fastmcp_server.py", FASTMCP),
    Peer("floor: bare uvicorn", "baseline_uvicorn.py", logs=True),
    Peer("floor: socket loop", "baseline_http.py"),
)
