"""`dittybag tag`: manage the tags of prompts."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from dittybag.cli.error_output import ExitStatus
from dittybag.cli.output import clip_line, json_option, print_json, print_table
from dittybag.cli.prompt_read_commands import limit_option, print_prompts, search_prompts, suggest_prompts
from dittybag.cli.read_input import refuse, suggestion, text
from dittybag.cli.strict_options import StrictGroup
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.domain.display import format_count
from dittybag.domain.prompts import Prompt
from dittybag.services.prompt_service import PromptAddress


@click.group("tag", StrictGroup)
def command() -> None:
    """Manage the tags of prompts."""


@command.command("list")
@in_project
@json_option
def list_tags(options: WorkspaceOptions, *, as_json: bool) -> None:
    """List all tags, most used first.

    \b
    Example:
      dittybag tag list
    """
    tags = options.run(lambda session: session.workspace.prompts.tags(session.caller))
    if as_json:
        print_json({"tags": [{"name": tag.name, "prompts": tag.prompt_count} for tag in tags]})
    elif tags:
        print_table(("tag", "prompts"), [(tag.name, str(tag.prompt_count)) for tag in tags], right=(1,))
    else:
        click.echo("No tags yet", err=True)
        click.echo("hint: to add a tag, run: dittybag tag add PROMPT TAG", err=True)


@command.command("show")
@click.argument("tag", type=text)
@limit_option
@click.option("--all", "everything", is_flag=True, help="Show all results.")
@in_project
@json_option
def show(tag: str, options: WorkspaceOptions, limit: int, *, everything: bool, as_json: bool) -> None:
    """List the prompts that have a tag, most recently updated first.

    \b
    Example:
      dittybag tag show git
    """
    prompts, total = options.run(
        lambda session: search_prompts(session, "", (tag,), limit=sys.maxsize if everything else limit)
    )
    if not total:
        _refuse_unknown_tag(options, tag)
    print_prompts(prompts, total, as_json=as_json)


@command.command("add")
@click.argument("prompt", type=text)
@click.argument("tags", metavar="TAG...", type=text, nargs=-1, required=True)
@in_project
@json_option
def add(prompt: str, tags: tuple[str, ...], options: WorkspaceOptions, *, as_json: bool) -> None:
    """Add tags to a prompt.

    \b
    Example:
      dittybag tag add code-review security python
    """
    with suggest_prompts(options):
        tagged, changed = options.run(
            lambda session: session.workspace.prompts.retag(
                session.caller, PromptAddress(any=prompt), add=tags
            )
        )
    _print_result(tagged, changed=changed, as_json=as_json)


@command.command("remove")
@click.argument("prompt", type=text)
@click.argument("tags", metavar="TAG...", type=text, nargs=-1, required=True)
@in_project
@json_option
def remove(prompt: str, tags: tuple[str, ...], options: WorkspaceOptions, *, as_json: bool) -> None:
    """Remove tags from a prompt.

    \b
    Example:
      dittybag tag remove code-review python
    """
    with suggest_prompts(options):
        tagged, changed = options.run(
            lambda session: session.workspace.prompts.retag(
                session.caller, PromptAddress(any=prompt), remove=tags
            )
        )
    _print_result(tagged, changed=changed, as_json=as_json)


@command.command("rename")
@click.argument("old", type=text)
@click.argument("new", type=text)
@in_project
@json_option
def rename(old: str, new: str, options: WorkspaceOptions, *, as_json: bool) -> None:
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
    if as_json:
        print_json({"old": old, "new": new, "prompts": names})
    else:
        click.echo(f"Renamed tag '{old}' to '{new}' on {format_count(len(names), 'prompt')}")


def _refuse_unknown_tag(options: WorkspaceOptions, tag: str) -> NoReturn:
    tags = options.run(lambda session: session.workspace.prompts.tags(session.caller))
    refuse(
        f"No prompt in project '{options.settings.project}' has the tag '{clip_line(tag)}'",
        suggestion(tag, [item.name for item in tags], "run `dittybag tag list` to see all tags"),
        status=ExitStatus.NOT_FOUND,
        code="NOT_FOUND",
    )


def _print_result(prompt: Prompt, *, changed: bool, as_json: bool) -> None:
    if as_json:
        print_json({"id": prompt.id, "name": prompt.name, "tags": prompt.tags, "changed": changed})
    else:
        has = f"has the tags {', '.join(prompt.tags)}" if prompt.tags else "has no tags"
        click.echo(f"Prompt '{prompt.name}' {has}{'' if changed else ' (unchanged)'}")
