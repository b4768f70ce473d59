"""Runs an HTTP server with the web UI as a process, and calls its tools as an agent."""

from __future__ import annotations

import http.client
import os
import re
import select
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import msgspec

from tests.cli.cli_runner import dittybag
from tests.forked_processes import ForkedProcess

_TIMEOUT_SECONDS = 20.0


class WebServerProcess:
    """A running `dittybag serve --http` process."""

    def __init__(self, home: Path, *arguments: str, variables: dict[str, str] | None = None) -> None:
        self.home = home
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DITTYBAG_")}
        self._log = bytearray()
        self.process = ForkedProcess(
            *("dittybag", "serve", "--http", "127.0.0.1:0", *arguments),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=inherited | {"DITTYBAG_HOME": str(home), "DITTYBAG_AUTO_BACKUP": "off"} | (variables or {}),
        )
        #: A sign-in link that works once; with token authentication, the URL of the web UI.
        self.link = self.wait_for(r"Web UI: (\S+)")
        self.origin = "/".join(self.link.split("/")[:3])
        self.port = int(self.origin.rpartition(":")[2])

    def wait_for(self, pattern: str) -> str:
        """Wait until standard error matches a pattern; return its first group."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while (found := re.search(pattern, self.log)) is None:
            left = deadline - time.monotonic()
            assert left > 0, f"not logged: {pattern}\n{self.log}"
            self._read(left)
        return found[1]

    def _read(self, seconds: float) -> None:
        assert self.process.stderr is not None
        if select.select([self.process.stderr], [], [], seconds)[0]:
            piece = self.process.stderr.read(1 << 16)
            assert piece, f"the server exited: {self._log.decode()}"
            self._log += piece

    @property
    def log(self) -> str:
        return self._log.decode("utf-8", "replace")

    def clear_log(self) -> None:
        """Discard the output so far, so that `wait_for` matches only later output."""
        self._log.clear()

    def new_link(self) -> str:
        """Make the server print another sign-in link, and return it."""
        self.clear_log()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_TIMEOUT_SECONDS)
        connection.request("POST", "/sign-in/link", headers={"Content-Length": "0"})
        assert connection.getresponse().status == 303
        connection.close()
        return self.wait_for(r"Web UI: (\S+)")

    def call(self, tool: str, client: str = "claude-code", token: str = "", **arguments: Any) -> Any:
        """Call a tool as an agent does; return its structured content."""
        params = {"name": tool, "arguments": arguments}
        return self.request("tools/call", tool, params, client, token).get("structuredContent")

    def request(
        self, method: str, name: str, params: dict[str, Any], client: str = "claude-code", token: str = ""
    ) -> Any:
        """Send a request on a connection of its own; return the result. `name`: what it is about."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        body = msgspec.json.encode(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": meta}}
        )
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            "Mcp-Name": name,
        } | ({"Authorization": f"Bearer {token}"} if token else {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_TIMEOUT_SECONDS)
        connection.request("POST", "/mcp", body, headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        assert response.status == 200, text
        if text.startswith((b"event:", b"data:")):
            text = next(line[5:] for line in text.splitlines() if line.startswith(b"data:"))
        result = msgspec.json.decode(text)["result"]
        assert not result.get("isError"), result
        return result

    def dittybag(self, *arguments: str, stdin: str = "") -> str:
        """Run a command in the same data folder; return its standard output."""
        return dittybag(self.home, *arguments, stdin=stdin).stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=_TIMEOUT_SECONDS)
        finally:
            self.process.kill()
            self.process.wait()
            assert self.process.stderr is not None
            self._log += self.process.stderr.read() or b""
            self.process.stderr.close()
        assert "Traceback" not in self.log, self.log[-3000:]
