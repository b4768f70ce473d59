"""`dittybag demo`: try Dittybag on a sample workspace, in the browser or in the terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from dittybag.assembly.workspace_session import with_workspace
from dittybag.cli.browser import open_browser
from dittybag.cli.error_output import wants_json
from dittybag.cli.output import json_option, print_json
from dittybag.cli.sample_workspace import PROJECT, fill_sample, write_library
from dittybag.cli.strict_options import StrictCommand
from dittybag.config import SettingsError, environment_with_home, settings

#: How long the server may take to exit.
_EXIT_TIMEOUT_SECONDS: Final = 20

#: At most this many lines of a response are printed.
_MAX_LINES: Final = 12
_NO_BACKUPS: Final = {"DITTYBAG_AUTO_BACKUP": "off"}

_MAX_TEXT: Final = 40

#: A narrower terminal shows the response below the request.
_MIN_TWO_COLUMNS: Final = 90


class TourStep(Struct, frozen=True):
    """One request of the tour and its response."""

    words: str
    request: dict[str, Any]
    answer: dict[str, Any]
    milliseconds: float


class DemoClient:
    """A minimal MCP client that starts its own server process."""

    def __init__(self, database: str, home: str) -> None:
        self._asked = 0
        self._begun = time.perf_counter()
        self._server = subprocess.Popen(  # noqa: S603  # our own program
            [*_own_command(), "serve", "--db", database, "--project", PROJECT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment_with_home(home),
        )

    def request(self, words: str, method: str, **params: Any) -> TourStep:
        """Send a request and wait for its response."""
        self._asked += 1
        begun = self._begun if self._asked == 1 else time.perf_counter()
        request = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        self._send(request)
        while (answer := self._next()).get("id") != self._asked:
            # Skip notifications.
            continue
        return TourStep(words, request, answer, 1000 * (time.perf_counter() - begun))

    def call(self, words: str, tool: str, **arguments: Any) -> TourStep:
        return self.request(words, "tools/call", name=tool, arguments=arguments)

    def notify(self, method: str) -> None:
        self._send({"jsonrpc": "2.0", "method": method})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(msgspec.json.encode(message) + b"\n")
        self._server.stdin.flush()

    def _next(self) -> dict[str, Any]:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            raise click.ClickException("The server exited before it responded")
        message: dict[str, Any] = msgspec.json.decode(line)
        return message

    def close(self) -> None:
        """Disconnect and wait for the server to exit."""
        self._server.communicate(timeout=_EXIT_TIMEOUT_SECONDS)


def _own_command() -> list[str]:
    return [sys.executable, "-m", "dittybag"]


def _tour(client: DemoClient) -> Iterator[TourStep]:
    yield client.request(
        "A client starts the server and initializes the session",
        "initialize",
        protocolVersion="2025-11-25",
        capabilities={},
        clientInfo={"name": "demo", "version": "1"},
    )
    client.notify("notifications/initialized")
    yield client.request("Prompts: written once, available in every client", "prompts/list")
    yield client.request(
        "Prompts can have arguments",
        "prompts/get",
        name="explain-error",
        arguments={"error": "no such table: users", "language": "SQL"},
    )
    yield client.request(
        "Libraries: folders of template files, available as soon as they are saved",
        "prompts/get",
        name="team:commit",
        arguments={"diff": "- retries = 1\n+ retries = 3", "ticket": "AUTH-7"},
    )
    yield client.call(
        "Search: one query over prompts, libraries, resources and tasks", "search", query="password", limit=1
    )
    yield client.call(
        "Tasks: with priority and required energy",
        "task_create",
        title="Rotate the signing key",
        project=PROJECT,
        priority=4,
        energy="deep",
    )
    yield client.call(
        "Errors: every problem is reported at once, so the model can fix its call in one try",
        "create_prompt",
        name="my prompt",
        content="",
    )
    yield client.call("An agent deletes the wrong prompt", "delete_prompt", name="code-review")
    changes = client.call("", "list_changes", limit=1)
    (deletion,) = changes.answer["result"]["structuredContent"]["changes"]
    yield client.call("Undo: the change log restores it", "undo_change", change=deletion["change"])


@contextmanager
def _database(keep: str | None) -> Iterator[str]:
    """Yield the path of the sample database, which is removed afterwards unless it is to be kept."""
    if keep is not None:
        path = os.path.abspath(os.path.expanduser(keep))  # noqa: PTH100, PTH111
        if os.path.exists(path):  # noqa: PTH110
            raise SettingsError(f"{path} already exists; choose a new file for --keep")
        yield path
        return
    folder = tempfile.mkdtemp(prefix="dittybag-demo-")
    try:
        yield os.path.join(folder, "demo.db")  # noqa: PTH118
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@click.command("demo", StrictCommand)
@click.option("--keep", metavar="FILE", help="Keep the sample workspace in a new file.")
@click.option("--once", is_flag=True, help="Show an MCP session in the terminal instead.")
@click.option(
    "--browser/--no-browser", default=True, help="Open a browser (default), or only print the link."
)
@json_option
def command(keep: str | None, *, once: bool, browser: bool) -> None:
    """Try Dittybag on a sample workspace in your browser. Your own data is not touched.

    The demo runs until you press Ctrl-C. With --once, or if the output is not a terminal, it prints an MCP
    session instead, with requests and responses side by side.

    \b
    Examples:
      dittybag demo
      dittybag demo --once
      dittybag demo --no-browser --keep sample.db
    """
    with (
        _database(keep) as database,
        tempfile.TemporaryDirectory(prefix="dittybag-demo-", ignore_cleanup_errors=True) as home,
    ):
        write_library(Path(home))
        if not (once or wants_json()) and sys.stdout.isatty():
            from dittybag.cli.sample_history import fill_demo

            fill_demo(settings(_NO_BACKUPS, db=database))
            _serve(database, home, opens=browser)
            if keep:
                click.echo(f"\nThe sample workspace is in {database}. {_reopen_line(database)}")
            return
        with_workspace(settings(_NO_BACKUPS, db=database), fill_sample)
        client = DemoClient(database, home)
        try:
            if wants_json():
                exchanges = [msgspec.structs.asdict(step) for step in _tour(client)]
                print_json({"exchanges": exchanges})
            else:
                _print_tour(_tour(client), kept=database if keep else None)
        finally:
            client.close()


def _serve(database: str, home: str, *, opens: bool) -> None:
    """Serve the web UI until the user presses Ctrl-C."""
    from dittybag.assembly.http_setup import serve_http

    def print_link(port: int, key: str) -> None:
        link = f"http://127.0.0.1:{port}/sign-in?key={key}"
        opened = opens and open_browser(link)
        click.echo(f"\nWeb UI of the sample workspace: {click.style(link, fg='cyan')}")
        click.echo("Opened in your browser." if opened else "Open this link in your browser; it works once.")
        click.echo(f"MCP clients can connect to http://127.0.0.1:{port}/mcp")
        click.echo(
            "Your own data is not touched. Press Ctrl-C to stop. "
            "For a tour in the terminal, run: dittybag demo --once\n"
        )

    chosen = settings({"DITTYBAG_HOME": home}, db=database, project=PROJECT, http="127.0.0.1:0")
    serve_http(msgspec.structs.replace(chosen, is_demo=True), lambda port: None, print_link)


def _print_tour(steps: Iterator[TourStep], *, kept: str | None) -> None:
    from dittybag.assembly.client_connections import program

    width = shutil.get_terminal_size((100, 24)).columns
    click.secho("\nDittybag", bold=True, nl=False)
    click.echo(" is a context server for AI agents: people and their agents share prompts, resources and")
    click.echo("tasks in one place, from every MCP client. This is a live session with dittybag serve on the")
    click.echo(f"sample project {PROJECT}.")
    for number, step in enumerate(steps, start=1):
        click.secho(f"\n{number}. {step.words}", bold=True)
        _print_exchange(step, width)
    command, prefix = program()
    arguments = [*prefix, "serve", *(["--db", kept, "--project", PROJECT] if kept else [])]
    entry = {"mcpServers": {"dittybag": {"command": command, "args": arguments}}}
    click.secho("\nTo add Dittybag to Claude Code:", bold=True)
    click.secho(f"  claude mcp add dittybag -- {shlex.join([command, *arguments])}", fg="green")
    title = "To add it to Claude Desktop, Cursor and most other clients, in their configuration file:"
    click.secho(f"\n{title}", bold=True)
    click.secho(f"  {_compact_json(entry)}", fg="green")
    sample = f"is in {kept}" if kept else "was removed (dittybag demo --keep FILE keeps it)"
    click.echo(f"\nThe sample workspace {sample}. Your own data was not touched.")
    if kept:
        click.echo(_reopen_line(kept))


def _reopen_line(kept: str) -> str:
    command = ["dittybag", "serve", "--http", "--db", kept, "--project", PROJECT]
    return f"To open it in your browser, run: {shlex.join(command)}"


def _print_exchange(step: TourStep, width: int) -> None:
    """Print a request and its response: side by side, or below each other on a narrow terminal."""
    colour = "red" if step.answer.get("result", {}).get("isError") is True else "green"
    is_wide = width >= _MIN_TWO_COLUMNS
    left = (width - 2) * 2 // 5 if is_wide else width
    right = width - 2 - left if is_wide else width
    request = _fold(_request_text(step.request, left), left)
    answer = _fold(_answer_text(step, right), right)
    if not is_wide:
        request, answer = [*request, *[""] * len(answer)], [*[""] * len(request), *answer]
    for asked, answered in zip_longest(request, answer, fillvalue=""):
        gap = " " * (left - len(asked) + 2) if is_wide and answered else ""
        click.echo(click.style(asked, fg="cyan") + gap + click.style(answered, fg=colour))


def _fold(text: str, width: int) -> list[str]:
    return [part for line in text.splitlines() for part in textwrap.wrap(line, width) or [""]]


def _request_text(request: dict[str, Any], width: int) -> str:
    params = request["params"]
    if request["method"] == "tools/call":
        return f"-> {params['name']}\n{_format_json(params['arguments'], width)}"
    return f"-> {request['method']}" + (f"\n{_format_json(params, width)}" if params else "")


def _answer_text(step: TourStep, width: int) -> str:
    """Format a response: its duration, and the text of the result."""
    result: Any = step.answer.get("result") or step.answer["error"]
    header = f"<- {step.milliseconds:.1f} ms"
    if step.request["method"] == "initialize":
        header = f"<- {step.milliseconds:.0f} ms after the process was started"
        result = {"serverInfo": result["serverInfo"], "capabilities": list(result["capabilities"])}
    elif step.request["method"] == "prompts/get":
        return f"{header}\n{result['messages'][0]['content']['text']}"
    elif "content" in result:
        text = result["content"][0]["text"]
        if not text.startswith("{"):
            return f"{header}\n{text}"
        result = msgspec.json.decode(text)
    lines = _format_json(_clip_texts(result), width).splitlines()
    if len(lines) > _MAX_LINES + 2:
        lines = [*lines[:_MAX_LINES], f"... and {len(lines) - _MAX_LINES} more lines"]
    return "\n".join([header, *lines])


def _clip_texts(value: Any) -> Any:
    """Return the value with long texts cut."""
    if isinstance(value, dict):
        return {key: _clip_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clip_texts(item) for item in value]
    return value[:_MAX_TEXT] + "..." if isinstance(value, str) and len(value) > _MAX_TEXT else value


def _compact_json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def _format_json(value: Any, width: int, indent: int = 0) -> str:
    """Format JSON, breaking lines only where they exceed the width."""
    line = _compact_json(value)
    if len(line) + indent <= width or not isinstance(value, dict | list) or not value:
        return line
    inner = indent + 2
    if isinstance(value, dict):
        parts = [f"{_compact_json(key)}: {_format_json(item, width, inner)}" for key, item in value.items()]
    else:
        parts = [_format_json(item, width, inner) for item in value]
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    body = ",\n".join(" " * inner + part for part in parts)
    return f"{opening}\n{body}\n{' ' * indent}{closing}"
