"""`dittybag tag`: manage the tags of prompts."""

from __future__ import annotations

from typing import NoReturn

import click

from dittybag.cli.error_output import ExitStatus
from dittybag.cli.output import clip_line, paged, print_list, print_result
from dittybag.cli.prompt_read_commands import print_prompts, search_prompts
from dittybag.cli.read_input import refuse, suggestion, text
from dittybag.cli.strict_options import StrictGroup
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.display import format_count
from dittybag.services.prompt_service import PromptAddress


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
        empty=("No tags yet", "to add a tag, run: dittybag tag add PROMPT TAG"),
        right=(1,),
    )


@command.command("show")
@click.argument("tag", type=text)
@paged
@in_project
def show(tag: str, options: WorkspaceOptions, limit: int) -> None:
    """List the prompts that have a tag, most recently updated first.

    \b
    Example:
      dittybag tag show git
    """
    prompts, total = options.run(lambda session: search_prompts(session, "", (tag,), limit=limit))
    if not total:
        _refuse_unknown_tag(options, tag)
    print_prompts(prompts, total)


@command.command("add")
@click.argument("prompt", type=text)
@click.argument("tags", metavar="TAG...", type=text, nargs=-1, required=True)
@in_project
def add(prompt: str, tags: tuple[str, ...], options: WorkspaceOptions) -> None:
    """Add tags to a prompt.

    \b
    Example:
      dittybag tag add code-review security python
    """
    _retag(options, prompt, add=tags)


@command.command("remove")
@click.argument("prompt", type=text)
@click.argument("tags", metavar="TAG...", type=text, nargs=-1, required=True)
@in_project
def remove(prompt: str, tags: tuple[str, ...], options: WorkspaceOptions) -> None:
    """Remove tags from a prompt.

    \b
    Example:
      dittybag tag remove code-review python
    """
    _retag(options, prompt, remove=tags)


def _retag(options: WorkspaceOptions, name: str, **tags: tuple[str, ...]) -> None:
    prompt, changed = options.run(
        lambda session: session.workspace.prompts.retag(session.caller, PromptAddress(any=name), **tags)
    )
    has = f"has the tags {', '.join(prompt.tags)}" if prompt.tags else "has no tags"
    print_result(
        {"id": prompt.id, "name": prompt.name, "tags": prompt.tags, "changed": changed},
        f"Prompt '{prompt.name}' {has}{'' if changed else ' (unchanged)'}",
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
