"""`dittybag completion`: shell completion of commands, options and names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click

from dittybag.cli.strict_options import StrictCommand

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_SHELLS: Final = ("bash", "zsh", "fish")
#: The variable that a shell sets to request completions.
_VARIABLE: Final = "_DITTYBAG_COMPLETE"
#: At most this many names are offered.
_MAX_NAMES: Final = 200


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
        return completion_items(project_names(settings, incomplete, _MAX_NAMES))
    except Exception:  # noqa: BLE001  # an error message would garble the line being typed
        return []


def complete_workspaces(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the databases in the data folder."""
    from dittybag.config import home, workspace_names

    return completion_items(name for name in workspace_names(home(os.environ)) if name.startswith(incomplete))


def completion_items(names: Iterable[str]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    # Shells read one name per line.
    return [CompletionItem(name) for name in names if name.isprintable()]
