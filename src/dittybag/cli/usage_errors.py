"""Reports incorrect command lines in the style of all other errors, with what may have been meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

from dittybag.cli.error_output import ExitStatus, help_hint, report, wants_json
from dittybag.cli.output import clip_line
from dittybag.cli.read_input import close_matches
from dittybag.cli.strict_options import SHARED_OPTIONS

#: At most this many commands with the same name are suggested.
_MAX_COMMANDS: Final = 3
#: What people try, and the commands that do it, of which each group has one at most.
_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    "browse": ("open",),
    "cat": ("show",),
    "claim": ("next",),
    "diff": ("history",),
    "find": ("search",),
    "grep": ("search",),
    "init": ("connect",),
    "install": ("connect",),
    "log": ("history",),
    "ls": ("list",),
    "mv": ("rename",),
    "new": ("add", "create"),
    "revert": ("undo",),
    "rm": ("delete", "remove"),
    "server": ("serve",),
    "setup": ("connect",),
    "start": ("serve",),
    "ui": ("open",),
    "update": ("edit",),
    "web": ("open",),
}


def report_click_error(error: click.ClickException) -> int:
    """Report an error of click and return the exit status for it."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        if wants_json():
            report("A command is required", help_hint(error.ctx.command_path), code="USAGE")
        else:
            error.show()
        return error.exit_code
    is_usage = error.exit_code == ExitStatus.USAGE
    hints = _hints(error) if isinstance(error, click.UsageError) else []
    report(_message(error), *hints, code="USAGE" if is_usage else "REFUSED")
    return error.exit_code


def _message(error: click.ClickException) -> str:
    if isinstance(error, click.exceptions.NoSuchCommand):
        return f"Unknown command '{clip_line(error.command_name)}'"
    if isinstance(error, click.NoSuchOption):
        shared = next((option for option in SHARED_OPTIONS if error.option_name in option.opts), None)
        if error.ctx is not None and shared is not None:
            return f"--{shared.name} does not apply to `{error.ctx.command_path}`"
        return f"Unknown option {clip_line(error.option_name)}"
    if isinstance(error, click.BadParameter) and error.param is not None:
        name = _parameter_name(error.param, error.ctx)
        is_missing = isinstance(error, click.MissingParameter)
        message = f"{name} is required" if is_missing else f"{name}: {error.message}"
    else:
        message = error.format_message()
    # Choices are on lines of their own.
    return " ".join(message.split()).removesuffix(".")


def _parameter_name(parameter: click.Parameter, ctx: click.Context | None) -> str:
    if isinstance(parameter, click.Argument) and ctx is not None:
        return parameter.make_metavar(ctx).strip("[].")
    return max(parameter.opts, key=len)


def _hints(error: click.UsageError) -> list[str]:
    ctx, hints = error.ctx, []
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        hints.append(f"did you mean {' or '.join(error.possibilities)}?")
    if isinstance(error, click.exceptions.NoSuchCommand) and ctx is not None:
        similar = _similar_commands(error.command_name, ctx)
        hints += [f"did you mean {' or '.join(similar)}?"] if similar else []
    if type(error) in (click.UsageError, click.MissingParameter) and ctx is not None:
        usage = " ".join([ctx.command_path, *ctx.command.collect_usage_pieces(ctx)])
        hints.append(f"usage: {usage}")
    if ctx is not None:
        hints.append(help_hint(ctx.command_path))
    return hints


def _similar_commands(name: str, ctx: click.Context) -> list[str]:
    """Return the commands that may have been meant, as they are typed."""
    group = ctx.command
    if not isinstance(group, click.Group):
        return []
    names = group.list_commands(ctx)
    meant = {name, *_SYNONYMS.get(name, ())}
    known = sorted(meant.intersection(names)) or close_matches(name, names)
    if known or ctx.parent is not None:
        return [f"{ctx.command_path} {command}" for command in known]
    found = []
    for top in names:
        command = group.get_command(ctx, top)
        if isinstance(command, click.Group):
            inner = meant.intersection(command.list_commands(ctx))
            found += [f"{ctx.command_path} {top} {command_name}" for command_name in sorted(inner)]
    return found[:_MAX_COMMANDS]
