"""`dittybag tag`: manage the tags of prompts."""

from __future__ import annotations

from typing import NoReturn

import click

from dittybag.cli.error_output import ExitStatus
from dittybag.cli.output import clip_line, print_list, print_result
from dittybag.cli.read_input import refuse, suggestion, text
from dittybag.cli.strict_options import StrictGroup
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.display import format_count


@click.group("tag", StrictGroup)
def command() -> None:
    """Manage the tags of prompts."""


@command.command("list")
@in_project
def list_tags(options: WorkspaceOptions) -> None:
    """List all tags, most used first.

    \b
    Example:
      dittybag tag list
    """
    tags = options.run(lambda session: session.workspace.prompts.tags(session.caller))
    print_list(
        {"tags": [{"name": tag.name, "prompts": tag.prompt_count} for tag in tags]},
        ("tag", "prompts"),
        [(tag.name, str(tag.prompt_count)) for tag in tags],
        empty=("No tags yet", "to add a prompt with a tag, run: dittybag prompt add NAME --tag TAG"),
        right=(1,),
    )


@command.command("rename")
@click.argument("old", type=text)
@click.argument("new", type=text)
@in_project
def rename(old: str, new: str, options: WorkspaceOptions) -> None:
    """Rename a tag on all prompts of the project.

    If the new name is already in use, the two tags are merged.

    \b
    Example:
      dittybag tag rename docs documentation
    """
    names = options.run(lambda session: session.workspace.prompts.rename_tag(session.caller, old, new))
    if not names:
        _refuse_unknown_tag(options, old)
    old, new = old.lower(), new.lower()
    print_result(
        {"old": old, "new": new, "prompts": names},
        f"Renamed tag '{old}' to '{new}' on {format_count(len(names), 'prompt')}",
    )


def _refuse_unknown_tag(options: WorkspaceOptions, tag: str) -> NoReturn:
    tags = options.run(lambda session: session.workspace.prompts.tags(session.caller))
    refuse(
        f"No prompt in project '{options.project_name}' has the tag '{clip_line(tag)}'",
        suggestion(tag, [item.name for item in tags], "run `dittybag tag list` to see all tags"),
        status=ExitStatus.NOT_FOUND,
        code="NOT_FOUND",
    )
