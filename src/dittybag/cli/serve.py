"""`dittybag serve`: serve MCP clients over stdio or HTTP."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from dittybag.cli.error_output import ExitStatus, report, report_error, report_settings_error
from dittybag.config import SettingsError, settings_from_process
from dittybag.domain.errors import DittybagError, ProjectNotFound

#: The options: name, placeholder of the value, and help. One in brackets may be left out, a flag has none.
OPTIONS: Final = (
    (
        "--profile",
        "NAME",
        (
            "Set of tools: all (default), agent, mcpkg, twig, tasks or prompt-store. `agent` has one tool "
            "for each thing that agents do; the last four each replace the server of that name."
        ),
    ),
    (
        "--read-replica",
        "URL",
        (
            "Run lists and searches on this replica of a PostgreSQL server as long as it is up to date; "
            "repeatable."
        ),
    ),
    ("--http", "[HOST:PORT]", "Serve over HTTP (default address: 127.0.0.1:8765)."),
    (
        "--auth",
        "MODE",
        (
            "HTTP authentication: off or tokens (default: off, which is limited to loopback addresses). For "
            "tokens, see `dittybag token --help`."
        ),
    ),
    (
        "--rate-limit",
        "RATE",
        (
            "Maximum requests with one token, per second, minute or hour: 50/s (default), 3000/m, 10000/h, "
            "or off. Each server counts on its own."
        ),
    ),
    (
        "--rate-limit-burst",
        "N",
        "Requests allowed at once (default: those of 4 seconds, and at least 20).",
    ),
    ("--allow-host", "NAME", "Accept this host name in HTTP requests; repeatable."),
    (
        "--until-idle",
        "TIME",
        "Exit after this time without HTTP requests, such as 1h, and print no sign-in links.",
    ),
    ("--access-log", "", "Log every HTTP request to standard error as JSON."),
    ("--read-only", "", "Hide and reject all tools that write."),
    (
        "--toolsets",
        "LIST",
        "Serve only these toolsets, separated by commas: prompts, resources, tasks, search, history.",
    ),
)

#: The options of `dittybag` itself, with placeholders.
_SHARED: Final = {"--project": "NAME", "-p": "NAME", "--workspace": "NAME", "--db": "FILE"}

#: Printed when the command is started in a terminal.
_TERMINAL_NOTICE: Final = """\
This command is meant to be started by an MCP client, which sends JSON messages, one per line.
To connect a client, run dittybag connect; to try it, run dittybag demo. Press Ctrl-C to stop.
"""

_REPEATABLE: Final = ("--allow-host", "--read-replica")


def parse_options(arguments: Sequence[str]) -> dict[str, str | bool | list[str]]:
    """Parse the arguments into options by name. Raises `SettingsError`."""
    placeholders = _SHARED | {name: placeholder for name, placeholder, _ in OPTIONS}
    flags: dict[str, str | bool | list[str]] = {}
    lists: dict[str, list[str]] = {}
    rest = list(arguments)
    while rest:
        name, has_value, value = rest.pop(0).partition("=")
        key = "project" if name == "-p" else name.removeprefix("--").replace("-", "_")
        placeholder = placeholders.get(name)
        if placeholder is None:
            raise _unknown_option(name, placeholders)
        if key in flags and name not in _REPEATABLE:
            raise SettingsError(f"--{key.replace('_', '-')} can be given only once")
        if not placeholder:
            if has_value:
                raise SettingsError(f"{name} does not take a value")
            flags[key] = True
        elif placeholder.startswith("[") and not has_value:
            flags[key] = rest.pop(0) if rest and not rest[0].startswith("-") else ""
        else:
            if not has_value:
                if not rest:
                    raise SettingsError(f"{name} requires a value")
                value = rest.pop(0)
            if name in _REPEATABLE:
                flags[key] = lists.setdefault(key, [])
                lists[key].append(value)
            else:
                flags[key] = value
    return flags


def _unknown_option(name: str, options: Iterable[str]) -> SettingsError:
    from dittybag.cli.read_input import close_matches

    error = SettingsError(f"Unknown option {name}")
    if close := close_matches(name, options):
        error.add_note(f"did you mean {' or '.join(close)}?")
    return error


def _print_address(host: str, port: int, *, needs_token: bool) -> None:
    sys.stderr.write(f"Dittybag is listening on {_origin(host, port)}/mcp (press Ctrl-C to stop)\n")
    if needs_token:
        sys.stderr.write(f"Web UI: {_origin(host, port)}/ (sign in with a token)\n")
    sys.stderr.flush()


def _print_sign_in_link(host: str, port: int, key: str) -> None:
    sys.stderr.write(f"Web UI: {_origin(host, port)}/sign-in?key={key} (works once)\n")
    sys.stderr.flush()


def _offer_browser(origin: str, new_link_key: Callable[[], str | None]) -> None:
    """Open a browser whenever the user presses Enter, if this is the foreground job of a terminal."""
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    from dittybag.cli.browser import can_show_browser, open_browser

    if not can_show_browser():
        return
    from asyncio import get_running_loop

    loop, terminal = get_running_loop(), sys.stdin.fileno()

    def read_line() -> None:
        # A job in the background that reads from the terminal is stopped.
        if os.tcgetpgrp(terminal) != os.getpgrp() or not os.read(terminal, 4096):
            loop.remove_reader(terminal)
            return
        key = new_link_key()
        loop.run_in_executor(
            None, open_browser, f"{origin}/" if key is None else f"{origin}/sign-in?key={key}"
        )

    if os.tcgetpgrp(terminal) == os.getpgrp():
        sys.stderr.write("Press Enter to open the web UI in your browser.\n")
        sys.stderr.flush()
        loop.add_reader(terminal, read_line)


def _origin(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def run(arguments: Sequence[str], on_open: Callable[[], object]) -> int:
    """Serve until the client disconnects, and return the exit status.

    `on_open` is called when the server is open.
    """
    if any(argument in ("-h", "--help") for argument in arguments):
        from dittybag.cli.commands import main

        return main(["serve", "--help"])
    try:
        settings = settings_from_process(**parse_options(arguments))
        if settings.http is not None:
            from dittybag.assembly.http_setup import serve_http

            host = settings.http[0]
            needs_token = settings.auth != "off"

            def on_ready(port: int) -> None:
                on_open()
                _print_address(host, port, needs_token=needs_token)

            serve_http(
                settings,
                on_ready,
                lambda port, key: _print_sign_in_link(host, port, key),
                offer_browser=lambda port, new_link_key: _offer_browser(_origin(host, port), new_link_key),
            )
            return ExitStatus.OK
        if sys.stdin is not None and sys.stdin.isatty():
            sys.stderr.write(_TERMINAL_NOTICE)
        from dittybag.assembly.server_setup import serve_stdio

        serve_stdio(settings, on_open)
    except SettingsError as error:
        return report_settings_error(error, "dittybag serve")
    except ProjectNotFound as error:
        import shlex

        same = f" --db {shlex.quote(settings.database)}"
        report(
            f"Project '{error.project}' does not exist in {settings.database}",
            f"to list projects, run: dittybag project list{same}",
            f"to create it, run: dittybag project create {shlex.quote(error.project)}{same}",
        )
        return ExitStatus.NOT_FOUND
    except DittybagError as error:
        return report_error(error)
    return ExitStatus.OK
