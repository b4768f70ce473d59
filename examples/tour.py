"""A tour: a real MCP session with the notebook server, request and answer side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).with_name("notebook.py")
WIDTH = 100
COLOURS = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def main() -> int:
    """Run the tour; the exit status."""
    say("Satchel hands prompts, documents and tasks to AI agents over MCP. This is its engine at work:")
    say("examples/notebook.py, a server of 80 lines, started as a client would start it.")
    begun = time.perf_counter()
    server = subprocess.Popen([sys.executable, str(NOTEBOOK)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    tour = Tour(server)
    answer = tour.ask(
        "Who are you? (the handshake of the revisions up to 2025-11-25)",
        "initialize",
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tour", "version": "1"}},
    )
    elapsed = 1000 * (time.perf_counter() - begun)
    say(f"{answer['serverInfo']['name']} answered {elapsed:.0f} ms after its process was started.")
    tour.notify("notifications/initialized")
    tour.ask("What can you do?", "tools/list")
    note = {"name": "add_note", "arguments": {"name": "tea", "text": "Oolong, three minutes"}}
    tour.ask("Write a note.", "tools/call", note)
    wrong = {"name": "add_note", "arguments": {"name": "Green Tea", "text": ""}}
    tour.ask("Write a bad one: everything that is wrong is said at once.", "tools/call", wrong)
    tour.ask("Read the first one back, as a resource.", "resources/read", {"uri": "note://tea"})
    envelope = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    count = {"name": "count_notes", "_meta": envelope}
    tour.ask("Count them, in the stateless revision 2026-07-28, on the same connection.", "tools/call", count)
    status = tour.end()
    say("The server ended as soon as the tour hung up.")
    say("Next: docs/guides/engine.md, to write a server of your own.")
    return status


class Tour:
    """A client on the server's standard streams."""

    def __init__(self, server: subprocess.Popen[bytes]) -> None:
        self._server = server
        self._asked = 0

    def ask(self, words: str, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and show it with its answer; the result."""
        self._asked += 1
        request: dict[str, Any] = {"jsonrpc": "2.0", "id": self._asked, "method": method}
        if params is not None:
            request["params"] = params
        self._send(request)
        paint("\n" + words, "1")
        show("->", request, "36")
        while True:
            message = self._receive()
            if "id" in message:
                break
            show("<-", message, "33")
        show("<-", message, "32")
        result: dict[str, Any] = message["result"]
        return result

    def notify(self, method: str) -> None:
        self._send({"jsonrpc": "2.0", "method": method})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(message).encode() + b"\n")
        self._server.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._server.stdout is not None
        message: dict[str, Any] = json.loads(self._server.stdout.readline())
        return message

    def end(self) -> int:
        """Hang up; the server's exit status."""
        self._server.communicate(timeout=10)
        return self._server.returncode


def say(words: str) -> None:
    print("\n" + textwrap.fill(words, WIDTH))


def show(arrow: str, message: dict[str, Any], colour: str) -> None:
    text = json.dumps(message, ensure_ascii=False)
    lines = textwrap.wrap(text, WIDTH - 4, break_on_hyphens=False)
    for number, line in enumerate(lines[:7]):
        paint(f"{arrow if number == 0 else '  '}  {line}", colour)
    if len(lines) > 7:
        paint(f"    ... and {len(text) - sum(map(len, lines[:7]))} characters more", colour)


def paint(text: str, colour: str) -> None:
    print(f"\033[{colour}m{text}\033[0m" if COLOURS else text)


if __name__ == "__main__":
    sys.exit(main())
