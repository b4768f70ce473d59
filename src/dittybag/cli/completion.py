"""`dittybag completion`: shell completion of commands, options and names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import click

from dittybag.cli.serve import USAGE
from dittybag.cli.strict_options import StrictCommand

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_SHELLS: Final = ("bash", "zsh", "fish")
#: The variable that a shell sets to request completions.
_VARIABLE: Final = "_DITTYBAG_COMPLETE"
#: At most this many names are offered.
_MAX_NAMES: Final = 200

#: An option in the usage of `dittybag serve`: name, metavar and help.
_OPTION: Final = re.compile(r"^  (?:-h, )?(--[a-z-]+)(?: (\[?[A-Z][A-Z:]*\]?))? +(\S.*)$", re.MULTILINE)


@click.command("completion", StrictCommand)
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print a shell completion script.

    \b
    Examples:
      dittybag completion fish > ~/.config/fish/completions/dittybag.fish
      echo 'eval "$(dittybag completion bash)"' >> ~/.bashrc
      echo 'eval "$(dittybag completion zsh)"' >> ~/.zshrc
    """
    from click.shell_completion import get_completion_class

    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(click.Group("dittybag"), {}, "dittybag", _VARIABLE).source())


def complete_projects(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the projects of the selected database."""
    from dittybag.assembly.project_names import project_names
    from dittybag.config import settings_from_process

    try:
        settings = settings_from_process(workspace=ctx.params.get("workspace"), db=ctx.params.get("db"))
        return _items(project_names(settings, incomplete, _MAX_NAMES))
    except Exception:  # noqa: BLE001  # an error message would garble the line being typed
        return []


def complete_workspaces(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the databases in the data folder."""
    from dittybag.config import home, workspace_names

    return _items(name for name in workspace_names(home(os.environ)) if name.startswith(incomplete))


def _complete_profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dittybag.contracts.profiles import PROFILES

    return _items(name for name in PROFILES if name.startswith(incomplete))


def _complete_toolsets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dittybag.contracts.tool_specs import TOOLSETS

    # The value is a comma-separated list; complete its last item.
    before, comma, last = incomplete.rpartition(",")
    others = before.split(",")
    return _items(before + comma + name for name in TOOLSETS if name.startswith(last) and name not in others)


def _items(names: Iterable[str]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    # Shells read one name per line.
    return [CompletionItem(name) for name in names if name.isprintable()]


_VALUES: Final[dict[str, dict[str, Any]]] = {
    "--profile": {"shell_complete": _complete_profiles},
    "--toolsets": {"shell_complete": _complete_toolsets},
    "--project": {"shell_complete": complete_projects},
    "--workspace": {"shell_complete": complete_workspaces},
    "--db": {"type": click.Path()},
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
