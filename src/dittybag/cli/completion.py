"""`dittybag completion`: shell completion of commands, options and names."""

from __future__ import annotations

from typing import Final

import click

from dittybag.cli.strict_options import StrictCommand

_SHELLS: Final = ("bash", "zsh", "fish")


@click.command("completion", StrictCommand)
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print a shell completion script.

    Commands, options, and the names of prompts, tasks, resources, tags, libraries and projects are completed.

    \b
    Examples:
      dittybag completion fish > ~/.config/fish/completions/dittybag.fish
      echo 'eval "$(dittybag completion bash)"' >> ~/.bashrc
      echo 'eval "$(dittybag completion zsh)"' >> ~/.zshrc
    """
    from dittybag.cli.completion_scripts import SCRIPTS

    click.echo(SCRIPTS[shell], nl=False)
