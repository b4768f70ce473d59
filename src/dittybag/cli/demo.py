"""`dittybag demo`: a sample workspace in the browser, or as a real MCP session in the terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from dittybag.assembly import with_workspace
from dittybag.cli.output import print_json
from dittybag.cli.sample_workspace import PROJECT, fill_sample, make_changes, write_library
from dittybag.config import SettingsError, beside, settings

#: An answer has this long to come.
_EXIT_TIMEOUT_SECONDS: Final = 20

#: More lines of an answer than this help nobody.
_MAX_LINES: Final = 12

_MAX_TEXT: Final = 40

#: A narrower terminal shows the answer below the request.
_MIN_TWO_COLUMNS: Final = 90


class TourStep(Struct, frozen=True):
    """One step of the tour."""

    words: str
    request: dict[str, Any]
    answer: dict[str, Any]
    milliseconds: float


class DemoClient:
    """A client of a server process, as small as one can be."""

    def __init__(self, database: str, home: str) -> None:
        self._asked = 0
        self._begun = time.perf_counter()
        self._server = subprocess.Popen(  # noqa: S603  # our own program
            [*_own_command(), "serve", "--db", database, "--project", PROJECT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=beside(home),
        )

    def request(self, words: str, method: str, **params: Any) -> TourStep:
        """Send a request and wait for its answer."""
        self._asked += 1
        begun = self._begun if self._asked == 1 else time.perf_counter()
        request = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        self._send(request)
        while (answer := self._next()).get("id") != self._asked:
            # A notification: the list of prompts has changed, and we know.
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
            raise click.ClickException("the server ended before it answered")
        message: dict[str, Any] = msgspec.json.decode(line)
        return message

    def close(self) -> None:
        """Hang up."""
        self._server.communicate(timeout=_EXIT_TIMEOUT_SECONDS)


def _own_command() -> list[str]:
    return [sys.executable, "-m", "dittybag"]


def _tour(client: DemoClient) -> Iterator[TourStep]:
    yield client.request(
        "A client starts the server and says hello",
        "initialize",
        protocolVersion="2025-11-25",
        capabilities={},
        clientInfo={"name": "demo", "version": "1"},
    )
    client.notify("notifications/initialized")
    yield client.request("Prompts: written once, at hand in every client", "prompts/list")
    yield client.request(
        "Some have arguments",
        "prompts/get",
        name="explain-error",
        arguments={"error": "no such table: users", "language": "SQL"},
    )
    yield client.request(
        "Libraries: folders of template files, in the menu the moment they are saved",
        "prompts/get",
        name="team:commit",
        arguments={"diff": "- retries = 1\n+ retries = 3", "ticket": "AUTH-7"},
    )
    yield client.call("One search over prompts, documents and tasks", "search", query="password", limit=1)
    yield client.call(
        "Tasks: what is to be done, and how much of you it takes",
        "task_create",
        title="Rotate the signing key",
        project=PROJECT,
        priority=4,
        energy="deep",
    )
    yield client.call(
        "A mistake: the model is told everything at once, in words it can act on",
        "create_prompt",
        name="my prompt",
        content="",
    )
    yield client.call("An agent deletes something it should not have", "delete_prompt", name="code-review")
    changes = client.call("", "list_changes", limit=1)
    (deletion,) = changes.answer["result"]["structuredContent"]["changes"]
    yield client.call("Nothing is lost: the log knows what it was", "undo_change", change=deletion["change"])


@contextmanager
def _database(keep: str | None) -> Iterator[str]:
    """Where the sample goes: a file to keep, or one that is gone afterwards."""
    if keep is not None:
        path = os.path.abspath(os.path.expanduser(keep))  # noqa: PTH100, PTH111
        if os.path.exists(path):  # noqa: PTH110
            raise SettingsError(f"{path} is there already, and the demo overwrites nothing")
        yield path
        return
    folder = tempfile.mkdtemp(prefix="dittybag-demo-")
    try:
        yield os.path.join(folder, "demo.db")  # noqa: PTH118
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@click.command("demo")
@click.option("--keep", metavar="FILE", help="Keep the sample workspace in this new file.")
@click.option("--once", is_flag=True, help="A tour in the terminal instead: a real MCP session.")
@click.option("--browser/--no-browser", default=True, help="Whether to open a browser.")
@click.option("--json", "as_json", is_flag=True, help="The tour, every request and answer as JSON.")
def command(keep: str | None, *, once: bool, browser: bool, as_json: bool) -> None:
    """Try Dittybag on a sample workspace, in your browser. It leaves your own data alone.

    It stays up until you end it with Ctrl-C. With --once, and wherever there is no terminal, it is a tour
    instead: a real MCP session, request and answer side by side.

    \b
    Examples:
      dittybag demo
      dittybag demo --once
      dittybag demo --no-browser --keep sample.db
    """
    with _database(keep) as database:
        with_workspace(settings({}, db=database), fill_sample)
        with tempfile.TemporaryDirectory(prefix="dittybag-demo-", ignore_cleanup_errors=True) as home:
            write_library(Path(home))
            if not (once or as_json) and sys.stdout.isatty():
                with_workspace(settings({}, db=database), make_changes)
                _serve(database, home, opens=browser)
                return
            client = DemoClient(database, home)
            try:
                if as_json:
                    exchanges = [msgspec.structs.asdict(step) for step in _tour(client)]
                    print_json({"exchanges": exchanges})
                else:
                    _print_tour(_tour(client), kept=database if keep else None)
            finally:
                client.close()


def _serve(database: str, home: str, *, opens: bool) -> None:
    """Show the pages until somebody ends it."""
    from dittybag.assembly.http_setup import serve_http

    def tell_link(port: int, key: str) -> None:
        link = f"http://127.0.0.1:{port}/sign-in?key={key}"
        opened = opens and _open_browser(link)
        click.echo(f"\nA sample workspace is at {click.style(link, fg='cyan')}")
        click.echo(
            "Your browser shows it now." if opened else "Open this link in your browser; it works once."
        )
        click.echo(f"Agents are welcome too, at http://127.0.0.1:{port}/mcp")
        click.echo(
            "Ctrl-C ends it. Your own data is not touched; dittybag demo --once is a tour in the terminal.\n"
        )

    chosen = settings({"DITTYBAG_HOME": home}, db=database, project=PROJECT, http="127.0.0.1:0")
    serve_http(chosen, lambda port: None, tell_link)


def _open_browser(link: str) -> bool:
    """Whether a browser could be opened."""
    import webbrowser

    try:
        return webbrowser.open(link)
    except (webbrowser.Error, OSError):
        return False


def _print_tour(steps: Iterator[TourStep], *, kept: str | None) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=100)
    console.print(
        "\n[bold]Dittybag[/] is the bag an AI agent carries: the [bold]prompts[/], [bold]documents[/] and "
        "[bold]tasks[/] that people and their agents share, in one place, for every MCP client. "
        f"This is a real session with [cyan]dittybag serve[/] on a sample project, {PROJECT}."
    )
    for number, step in enumerate(steps, start=1):
        _print_step(console, number, step)
    serve = [*_program(), "serve", *(["--db", kept, "--project", PROJECT] if kept else [])]
    entry = {"mcpServers": {"dittybag": {"command": serve[0], "args": serve[1:]}}}
    for words, line in (
        ("Give it to your own agent. Claude Code:", f"claude mcp add dittybag -- {shlex.join(serve)}"),
        ("Claude Desktop, Cursor and most others, in their configuration file:", _compact_json(entry)),
    ):
        console.print()
        console.print(Text(words, style="bold"))
        console.print(Text(f"  {line}", style="green"), soft_wrap=True)
    place = kept or "gone; dittybag demo --keep FILE keeps it"
    console.print(f"\nThe sample workspace: {place}. Your own data was not touched.", soft_wrap=True)


def _program() -> list[str]:
    """How a client starts Dittybag: with the full path, because it may know another PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "dittybag")  # noqa: PTH118, PTH120
    return [beside] if os.access(beside, os.X_OK) else _own_command()


def _print_step(console: Any, number: int, step: TourStep) -> None:
    from rich.table import Table
    from rich.text import Text

    console.print()
    console.print(Text(f"{number}. {step.words}", style="bold"))
    failed = step.answer.get("result", {}).get("isError") is True
    colour = "red" if failed else "green"
    left = (console.width - 2) * 2 // 5
    if console.width < _MIN_TWO_COLUMNS:
        console.print(Text(_request_text(step.request, console.width), style="cyan"))
        console.print(Text(_answer_text(step, console.width), style=colour))
        return
    right = console.width - 2 - left
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=left, overflow="fold")
    table.add_column(width=right - 2, overflow="fold")
    table.add_row(
        Text(_request_text(step.request, left), style="cyan"),
        Text(_answer_text(step, right - 2), style=colour),
    )
    console.print(table)


def _request_text(request: dict[str, Any], width: int) -> str:
    params = request["params"]
    if request["method"] == "tools/call":
        return f"-> {params['name']}\n{_format_json(params['arguments'], width)}"
    return f"-> {request['method']}" + (f"\n{_format_json(params, width)}" if params else "")


def _answer_text(step: TourStep, width: int) -> str:
    """What of an answer is worth reading: the text of a tool's result, and how long it took."""
    result: Any = step.answer.get("result") or step.answer["error"]
    took = f"<- {step.milliseconds:.1f} ms"
    if step.request["method"] == "initialize":
        took = f"<- {step.milliseconds:.0f} ms after its process was started"
        result = {"serverInfo": result["serverInfo"], "capabilities": list(result["capabilities"])}
    elif step.request["method"] == "prompts/get":
        return f"{took}\n{result['messages'][0]['content']['text']}"
    elif "content" in result:
        text = result["content"][0]["text"]
        if not text.startswith("{"):
            return f"{took}\n{text}"
        result = msgspec.json.decode(text)
    lines = _format_json(_clip_texts(result), width).splitlines()
    if len(lines) > _MAX_LINES + 2:
        lines = [*lines[:_MAX_LINES], f"... and {len(lines) - _MAX_LINES} lines more"]
    return "\n".join([took, *lines])


def _clip_texts(value: Any) -> Any:
    """The value with its long texts cut: this is for reading, not for use."""
    if isinstance(value, dict):
        return {key: _clip_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clip_texts(item) for item in value]
    return value[:_MAX_TEXT] + "..." if isinstance(value, str) and len(value) > _MAX_TEXT else value


def _compact_json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def _format_json(value: Any, width: int, indent: int = 0) -> str:
    """JSON that is broken only where it has to be."""
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
