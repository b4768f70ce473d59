"""Help and shell completion of `dittybag serve`, which otherwise runs without click."""

from __future__ import annotations

from typing import Any, Final

import click

from dittybag.cli import serve
from dittybag.cli.strict_options import DB, PROJECT, WORKSPACE, StrictCommand, refuse_others, shared_values

_HELP: Final = """Serve MCP clients over stdio or HTTP.

By default, the command serves one client over standard input and output. MCP clients start it themselves;
see `dittybag connect`. With --http, it serves any number of clients at http://HOST:PORT/mcp instead, and the
web UI at http://HOST:PORT/; see also `dittybag open`. With --project auto, the project is that of the folder
that the client works in; not with --http.

\b
Examples:
  dittybag serve --project auto --profile agent
  dittybag serve --http
  dittybag serve --http 0.0.0.0:8765 --auth tokens --allow-host dittybag.example.org
"""
_ENVIRONMENT: Final = """Environment variables: DITTYBAG_PROFILE, DITTYBAG_PROJECT, DITTYBAG_DATABASE_URL,
DITTYBAG_READ_REPLICAS, DITTYBAG_HTTP, DITTYBAG_AUTH, DITTYBAG_RATE_LIMIT, DITTYBAG_RATE_LIMIT_BURST,
DITTYBAG_ALLOWED_HOSTS, DITTYBAG_ACCESS_LOG, DITTYBAG_READ_ONLY and DITTYBAG_TOOLSETS set the options above.
DITTYBAG_HOME sets the data folder, DITTYBAG_ACTOR replaces the client's name in the change log, and
TWIG_DATA_DIR sets the folder of the libraries that the twig profile serves. CLAUDE_PROJECT_DIR, which Claude
Code sets, is the folder for --project auto.
"""


def _complete_profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from dittybag.contracts.profiles import PROFILES

    return [name for name in PROFILES if name.startswith(incomplete)]


_VALUES: Final[dict[str, dict[str, Any]]] = {"--profile": {"shell_complete": _complete_profiles}}


def _build_option(name: str, placeholder: str, about: str) -> click.Option:
    if not placeholder:
        return click.Option([name], is_flag=True, help=about)
    # Without a value of its own, the option is followed by other options.
    flag: dict[str, Any] = {"is_flag": False, "flag_value": ""} if placeholder.startswith("[") else {}
    return click.Option([name], metavar=placeholder, help=about, **flag, **_VALUES.get(name, {}))


class _ServeCommand(StrictCommand):
    """Runs only if options of `dittybag` itself stand before the command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing or {"-h", "--help"} & set(args):
            return super().parse_args(ctx, args)
        refuse_others(ctx)
        before = [f"--{name}={value}" for name, value in shared_values(ctx).items()]
        raise click.exceptions.Exit(serve.run([*before, *args], lambda: None))


serve_command: Final = _ServeCommand(
    "serve",
    params=[*(_build_option(*option) for option in serve.OPTIONS), PROJECT, WORKSPACE, DB],
    help=_HELP,
    epilog=_ENVIRONMENT,
)
