"""`dittybag tag`: list, show, add, remove and rename the tags of prompts."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from dittybag.cli.error_output import Status
from dittybag.cli.output import counted, json_option, print_json, print_table, shown
from dittybag.cli.prompt_read_commands import found_prompts, limit_option, near_prompts, print_prompts
from dittybag.cli.read_input import meaning, refuse, text
from dittybag.cli.workspace_options import Where, in_project
from dittybag.domain.prompts import Prompt
from dittybag.services.prompt_service import PromptAddress


@click.group("tag")
def command() -> None:
    """List, show, add, remove and rename the tags of prompts."""


@command.command("list")
@in_project
@json_option
def list_tags(where: Where, *, as_json: bool) -> None:
    """Show the tags in use, the most used first.

    \b
    Example:
      dittybag tag list
    """
    tags = where.run(lambda session: session.workspace.prompts.tags(session.caller))
    if as_json:
        print_json({"tags": [{"name": tag.name, "prompts": tag.prompt_count} for tag in tags]})
    elif tags:
        print_table(("tag", "prompts"), [(tag.name, str(tag.prompt_count)) for tag in tags], right=(1,))
    else:
        click.echo("There are no tags yet", err=True)
        click.echo("Next: dittybag tag add PROMPT TAG", err=True)


@command.command("show")
@click.argument("tag", type=text)
@limit_option
@click.option("--all", "everything", is_flag=True, help="However many there are.")
@in_project
@json_option
def show(tag: str, where: Where, limit: int, *, everything: bool, as_json: bool) -> None:
    """Show the prompts that have a tag, those changed last first.

    \b
    Example:
      dittybag tag show git
    """
    prompts, total = where.run(
        lambda session: found_prompts(session, "", (tag,), limit=sys.maxsize if everything else limit)
    )
    if not total:
        _unknown(where, tag)
    print_prompts(prompts, total, as_json=as_json)


@command.command("add")
@click.argument("prompt", type=text)
@click.argument("tags", metavar="TAG...", type=text, nargs=-1, required=True)
@in_project
@json_option
def add(prompt: str, tags: tuple[str, ...], where: Where, *, as_json: bool) -> None:
    """Give tags to a prompt.

    \b
    Example:
      dittybag tag add code-review security python
    """
    with near_prompts(where):
        tagged, changed = where.run(
            lambda session: session.workspace.prompts.retag(
                session.caller, PromptAddress(any=prompt), add=tags
            )
        )
    _report(tagged, changed=changed, as_json=as_json)


@command.command("remove")
@click.argument("prompt", type=text)
@click.argument("tags", metavar="TAG...", type=text, nargs=-1, required=True)
@in_project
@json_option
def remove(prompt: str, tags: tuple[str, ...], where: Where, *, as_json: bool) -> None:
    """Take tags from a prompt.

    \b
    Example:
      dittybag tag remove code-review python
    """
    with near_prompts(where):
        tagged, changed = where.run(
            lambda session: session.workspace.prompts.retag(
                session.caller, PromptAddress(any=prompt), remove=tags
            )
        )
    _report(tagged, changed=changed, as_json=as_json)


@command.command("rename")
@click.argument("old", type=text)
@click.argument("new", type=text)
@in_project
@json_option
def rename(old: str, new: str, where: Where, *, as_json: bool) -> None:
    """Give a tag another name, on all prompts of the project at once.

    If the other name is in use, the two become one.

    \b
    Example:
      dittybag tag rename docs documentation
    """
    names = where.run(lambda session: session.workspace.prompts.rename_tag(session.caller, old, new))
    if not names:
        _unknown(where, old)
    old, new = old.lower(), new.lower()
    if as_json:
        print_json({"old": old, "new": new, "prompts": names})
    else:
        click.echo(f"Renamed tag '{old}' to '{new}' on {counted(len(names), 'prompt')}")


def _unknown(where: Where, tag: str) -> NoReturn:
    tags = where.run(lambda session: session.workspace.prompts.tags(session.caller))
    refuse(
        f"No prompt in project '{where.settings.project}' has the tag '{shown(tag)}'",
        meaning(tag, [item.name for item in tags], "dittybag tag list shows what there is"),
        status=Status.NOT_FOUND,
        code="NOT_FOUND",
    )


def _report(prompt: Prompt, *, changed: bool, as_json: bool) -> None:
    if as_json:
        print_json({"id": prompt.id, "name": prompt.name, "tags": prompt.tags, "changed": changed})
    else:
        has = f"has the tags {', '.join(prompt.tags)}" if prompt.tags else "has no tags"
        click.echo(f"Prompt '{prompt.name}' {has}{'' if changed else ', as before'}")
