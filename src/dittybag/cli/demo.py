"""`dittybag demo`: try Dittybag on a sample workspace, in the browser or, without a terminal, in a script."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from msgspec.structs import replace

from dittybag.assembly.workspace_session import with_workspace
from dittybag.cli.browser import open_browser
from dittybag.cli.sample_workspace import PROJECT, fill_demo, write_library
from dittybag.cli.strict_options import StrictCommand
from dittybag.config import Settings, settings

_ANSWER_SECONDS: Final = 20
_PROTOCOL: Final = "2025-11-25"


class DemoClient:
    """A minimal MCP client over HTTP."""

    def __init__(self, port: int, name: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=_ANSWER_SECONDS)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        about = {"name": name, "version": "1"}
        self.request("initialize", protocolVersion=_PROTOCOL, capabilities={}, clientInfo=about)

    def request(self, method: str, **params: Any) -> Any:
        """Send a request, and return its result. Raises `click.ClickException` for an error."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._connection.request("POST", "/mcp", msgspec.json.encode(message), self._headers)
        response = self._connection.getresponse()
        answer = msgspec.json.decode(response.read())
        if session := response.headers.get("Mcp-Session-Id"):
            self._headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": _PROTOCOL}
        if "result" not in answer or answer["result"].get("isError"):
            raise click.ClickException(f"The server refused {method}: {msgspec.json.encode(answer).decode()}")
        return answer["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        return self.request("tools/call", name=tool, arguments=arguments)["structuredContent"]


@click.command("demo", StrictCommand)
@click.option("--no-browser", is_flag=True, help="Only print the link.")
def command(*, no_browser: bool) -> None:
    """Try Dittybag on a sample workspace in your browser. Your own data is not touched.

    The demo runs until you press Ctrl-C. If the output is not a terminal, two clients share a prompt over MCP
    instead, and the command ends.

    \b
    Examples:
      dittybag demo
      dittybag demo --no-browser
    """
    with _sample() as chosen:
        if sys.stdout.isatty():
            _serve(chosen, opens=not no_browser)
        else:
            _share_prompt(chosen)


@contextmanager
def _sample() -> Iterator[Settings]:
    """Yield the settings of a server of the sample workspace, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="dittybag-demo-", ignore_cleanup_errors=True) as home:
        write_library(Path(home))
        chosen = settings({"DITTYBAG_HOME": home}, project=PROJECT, http="127.0.0.1:0")
        chosen = replace(chosen, is_demo=True)
        with_workspace(chosen, fill_demo)
        yield chosen


def _serve(chosen: Settings, *, opens: bool) -> None:
    """Serve the web UI until the user presses Ctrl-C."""
    from dittybag.assembly.http_setup import serve_http

    def print_link(port: int, key: str) -> None:
        link = f"http://127.0.0.1:{port}/sign-in?key={key}"
        opened = opens and open_browser(link)
        click.echo(f"\nWeb UI of the sample workspace: {click.style(link, fg='cyan')}")
        click.echo("Opened in your browser." if opened else "Open this link in your browser; it works once.")
        click.echo(f"MCP clients can connect to http://127.0.0.1:{port}/mcp")
        click.echo("Your own data is not touched. Press Ctrl-C to stop.\n")

    serve_http(chosen, lambda port: None, print_link)


def _share_prompt(chosen: Settings) -> None:
    """Serve two clients, which share a prompt, and stop."""
    from dittybag.assembly.http_setup import serve_http

    problems: list[Exception] = []

    def run(port: int) -> None:
        try:
            _print_session(port)
        except Exception as problem:  # noqa: BLE001  # raised again below, in the thread of the command
            problems.append(problem)
        os.kill(os.getpid(), signal.SIGTERM)

    serve_http(
        chosen,
        lambda port: threading.Thread(target=run, args=(port,), daemon=True).start(),
        lambda port, key: None,
    )
    for problem in problems:
        raise problem


def _print_session(port: int) -> None:
    click.echo(f"Dittybag serves the sample project {PROJECT} at http://127.0.0.1:{port}/mcp.")
    writer, reader = DemoClient(port, "claude-code"), DemoClient(port, "cursor")
    name = "release-notes"
    writer.call("create_prompt", name=name, content="Write release notes for version 2.0.")
    click.echo(f"claude-code saves a prompt: {name}")
    (message,) = reader.request("prompts/get", name=name)["messages"]
    click.echo(f"cursor reads it: {message['content']['text']}")
    (change,) = writer.call("list_changes", limit=1)["changes"]
    writer.call("undo_change", change=change["change"])
    left = [prompt["name"] for prompt in reader.request("prompts/list")["prompts"]]
    assert name not in left
    click.echo(f"claude-code undoes it, which leaves {', '.join(left)}")
    click.echo(
        "Your own data was not touched. In a terminal, dittybag demo opens the sample in your browser."
    )
