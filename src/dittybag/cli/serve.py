"""`dittybag serve`: MCP on standard input and output."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from dittybag.cli.error_output import ExitStatus, report, report_error, report_settings_error
from dittybag.config import SettingsError, from_process
from dittybag.domain.errors import DittybagError, ProjectNotFound

USAGE: Final = """\
usage: dittybag serve [options]

Serve prompts, resources and tasks to one MCP client on standard input and output.
A client's configuration needs no more than the command: dittybag serve
With --http, serve any number of clients at http://HOST:PORT/mcp instead.

options:
  --profile NAME     dittybag (all tools, the default), mcpkg, twig, tasks or
                     prompt-store: a drop-in replacement for the server of that name
  --project NAME     the project to work in (default: default)
  --workspace NAME   a database in Dittybag's data folder (default: default)
  --db FILE          a database anywhere else
  --http [HOST:PORT] listen for HTTP (default: 127.0.0.1:8765)
  --auth HOW         who may come over HTTP: off (anybody on this machine, the
                     default) or tokens (see dittybag token --help)
  --allow-host NAME  a further name under which it is reached; any number of times
  --access-log       log every HTTP request to standard error, as JSON
  --read-only        hide and refuse everything that writes
  --toolsets LIST    only these, separated by commas:
                     prompts, resources, tasks, search, history
  -h, --help         show this

Each option but --workspace has a variable: DITTYBAG_PROFILE, DITTYBAG_PROJECT,
DITTYBAG_DATABASE_URL, DITTYBAG_READ_ONLY, DITTYBAG_TOOLSETS, DITTYBAG_HTTP,
DITTYBAG_AUTH, DITTYBAG_ALLOWED_HOSTS, DITTYBAG_ACCESS_LOG. DITTYBAG_HOME is the data
folder, DITTYBAG_ACTOR the name in the change log instead of the client's, and
TWIG_DATA_DIR the folder of the libraries that the profile twig serves.
"""

#: To somebody who starts it in a terminal.
_TERMINAL_NOTICE: Final = """\
This is for MCP clients: they start it themselves and speak JSON with it, one message a line.
dittybag demo shows what it does, and how to give it to a client. Ctrl-C ends it.
"""

_WITH_VALUE: Final = ("--profile", "--project", "--workspace", "--db", "--toolsets", "--http", "--auth")


def parse_options(arguments: Sequence[str]) -> dict[str, str | bool | list[str]]:
    """The options by name. Raises `SettingsError`."""
    flags: dict[str, str | bool | list[str]] = {}
    hosts: list[str] = []
    rest = list(arguments)
    while rest:
        name, has_value, value = rest.pop(0).partition("=")
        key = name.removeprefix("--").replace("-", "_")
        if name in ("--read-only", "--access-log") and not has_value:
            flags[key] = True
        elif name == "--http" and not has_value:
            flags[key] = rest.pop(0) if rest and not rest[0].startswith("-") else ""
        elif name in _WITH_VALUE or name == "--allow-host":
            if not has_value:
                if not rest:
                    raise SettingsError(f"{name} needs a value")
                value = rest.pop(0)
            if name == "--allow-host":
                flags[key] = hosts
                hosts.append(value)
            else:
                flags[key] = value
        else:
            raise SettingsError(f"dittybag serve has no option {name}")
    return flags


def _print_address(host: str, port: int, *, needs_token: bool) -> None:
    sys.stderr.write(f"Dittybag listens at {_origin(host, port)}/mcp (Ctrl-C ends it)\n")
    if needs_token:
        sys.stderr.write(f"Its pages for people: {_origin(host, port)}/ (sign in with a token)\n")
    sys.stderr.flush()


def _print_sign_in_link(host: str, port: int, key: str) -> None:
    sys.stderr.write(f"Its pages for people: {_origin(host, port)}/sign-in?key={key} (works once)\n")
    sys.stderr.flush()


def _origin(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def run(arguments: Sequence[str]) -> int:
    """Serve until the client hangs up; the exit status."""
    if any(argument in ("-h", "--help") for argument in arguments):
        sys.stdout.write(USAGE)
        return ExitStatus.OK
    try:
        settings = from_process(**parse_options(arguments))
        if settings.http is not None:
            from dittybag.assembly.http_setup import serve_http

            host = settings.http[0]
            needs_token = settings.auth != "off"
            serve_http(
                settings,
                lambda port: _print_address(host, port, needs_token=needs_token),
                lambda port, key: _print_sign_in_link(host, port, key),
            )
            return ExitStatus.OK
        if sys.stdin is not None and sys.stdin.isatty():
            sys.stderr.write(_TERMINAL_NOTICE)
        from dittybag.assembly import serve_stdio

        serve_stdio(settings)
    except SettingsError as error:
        return report_settings_error(error)
    except ProjectNotFound as error:
        import shlex

        same = f" --db {shlex.quote(settings.database)}"
        report(
            f"there is no project '{error.project}' in {settings.database}",
            f"see what there is: dittybag project list{same}",
            f"make it: dittybag project create {shlex.quote(error.project)}{same}",
        )
        return ExitStatus.NOT_FOUND
    except DittybagError as error:
        return report_error(error)
    return ExitStatus.OK
