"""Dittybag with its pages: a server process on a data folder of its own, and an agent that speaks to it."""

from __future__ import annotations

import http.client
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import msgspec

from tests.cli.cli_runner import dittybag
from tests.wire import ROOT

_PATIENCE_SECONDS = 20.0


class Served:
    """A running server, with what is needed to look at its pages and to speak to it as an agent."""

    def __init__(self, home: Path, *arguments: str, variables: dict[str, str] | None = None) -> None:
        import os

        self.home = home
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DITTYBAG_")}
        self._log = bytearray()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dittybag", "serve", "--http", "127.0.0.1:0", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=ROOT,
            env=inherited | {"DITTYBAG_HOME": str(home)} | (variables or {}),
        )
        said = self.wait_for(r"Web UI: (\S+)")
        self.origin = "/".join(said.split("/")[:3])
        #: Lets one browser in, once; where tokens are needed, the first page.
        self.link = said
        self.port = int(self.origin.rpartition(":")[2])

    def wait_for(self, pattern: str) -> str:
        """The first group of a pattern, once the server has written it to standard error."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (found := re.search(pattern, self.log)) is None:
            left = deadline - time.monotonic()
            assert left > 0, f"never said: {pattern}\n{self.log}"
            self._read(left)
        return found[1]

    def _read(self, seconds: float) -> None:
        assert self.process.stderr is not None
        if select.select([self.process.stderr], [], [], seconds)[0]:
            piece = self.process.stderr.read(1 << 16)
            assert piece, f"the server ended: {self._log.decode()}"
            self._log += piece

    @property
    def log(self) -> str:
        return self._log.decode("utf-8", "replace")

    def forget_log(self) -> None:
        """From now on, wait only for what the server writes later."""
        self._log.clear()

    def new_link(self) -> str:
        """Another link that lets one browser in, once: the server prints it when it is asked to."""
        self.forget_log()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_SECONDS)
        connection.request("POST", "/sign-in/link", headers={"Content-Length": "0"})
        assert connection.getresponse().status == 303
        connection.close()
        return self.wait_for(r"Web UI: (\S+)")

    def call(self, tool: str, client: str = "claude-code", token: str = "", **arguments: Any) -> Any:
        """Call a tool as an agent does; what it says, as data."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        } | ({"Authorization": f"Bearer {token}"} if token else {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_SECONDS)
        connection.request("POST", "/mcp", body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status == 200, text
        if text.startswith((b"event:", b"data:")):
            text = next(line[5:] for line in text.splitlines() if line.startswith(b"data:"))
        result = msgspec.json.decode(text)["result"]
        assert not result.get("isError"), result
        return result.get("structuredContent")

    def dittybag(self, *arguments: str, stdin: str = "") -> str:
        """Run a command in the same data folder; what it prints."""
        return dittybag(self.home, *arguments, stdin=stdin).stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=_PATIENCE_SECONDS)
        finally:
            self.process.kill()
            self.process.wait()
            assert self.process.stderr is not None
            self._log += self.process.stderr.read() or b""
            self.process.stderr.close()
        assert "Traceback" not in self.log, self.log[-3000:]
