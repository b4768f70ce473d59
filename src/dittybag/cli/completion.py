"""`dittybag completion`: shell completion of commands, options and names."""

from __future__ import annotations

import click

from dittybag.cli.strict_options import StrictCommand


@click.command("completion", StrictCommand)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a shell completion script.

    Commands, options, and the names of prompts, resources, tasks, libraries and projects are completed.

    \b
    Examples:
      dittybag completion fish > ~/.config/fish/completions/dittybag.fish
      echo 'eval "$(dittybag completion bash)"' >> ~/.bashrc
      echo 'eval "$(dittybag completion zsh)"' >> ~/.zshrc
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "dittybag", "_DITTYBAG_COMPLETE").source())
