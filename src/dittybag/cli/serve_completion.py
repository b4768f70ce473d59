"""Shell completion of `dittybag serve`, which itself runs without click."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from dittybag.cli.name_completion import items
from dittybag.cli.serve import USAGE

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: An option in the usage of `dittybag serve`: name, metavar and help.
_OPTION: Final = re.compile(r"^  (?:-h, )?(--[a-z-]+)(?: (\[?[A-Z][A-Z:]*\]?))? +(\S.*)$", re.MULTILINE)


def _complete_profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dittybag.contracts.profiles import PROFILES

    return items(name for name in PROFILES if name.startswith(incomplete))


def _complete_toolsets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dittybag.contracts.tool_specs import TOOLSETS

    # The value is a comma-separated list; complete its last item.
    before, comma, last = incomplete.rpartition(",")
    others = before.split(",")
    return items(before + comma + name for name in TOOLSETS if name.startswith(last) and name not in others)


_VALUES: Final[dict[str, dict[str, Any]]] = {
    "--profile": {"shell_complete": _complete_profiles},
    "--toolsets": {"shell_complete": _complete_toolsets},
}


def _build_option(name: str, takes: str, about: str) -> click.Option:
    if not takes or takes.startswith("["):
        return click.Option([name], is_flag=True, help=about)
    return click.Option([name], metavar=takes, help=about, **_VALUES.get(name, {}))


#: Completes `dittybag serve`, which itself runs without click. Built from its usage text.
serve_command: Final = click.Command(
    "serve",
    params=[
        _build_option(name, takes, about) for name, takes, about in _OPTION.findall(USAGE) if name != "--help"
    ],
    help="Serve MCP clients over stdio or HTTP.",
)
