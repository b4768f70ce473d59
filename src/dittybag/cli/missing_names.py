"""Asks for a name that was left out, with a picker, at a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from dittybag.cli.error_output import wants_json
from dittybag.cli.strict_options import command_words

#: Commands of these groups offer a picker. Those that remove something for good are in others.
_GROUPS: Final = ("prompt", "resource", "task", "library show")
#: At most this many names can be picked from.
_MAX_NAMES: Final = 20_000


def pick_missing(ctx: click.Context, args: Sequence[str], missing: click.Parameter | None) -> str | None:
    """Let the user pick the missing argument of a command; `None` if that is not possible here."""
    command = command_words(ctx)
    if missing is None or not command.startswith(_GROUPS) or wants_json():
        return None
    from dittybag.cli.picker import Choice, can_pick, pick

    if not can_pick():
        return None
    from dittybag.cli.name_completion import LIMIT, completer_for

    completer = completer_for(command, missing.name or "")
    if completer is None:
        return None
    parsed = ctx.command.make_context(ctx.info_name, list(args), parent=ctx.parent, resilient_parsing=True)
    parsed.meta[LIMIT] = _MAX_NAMES
    picked = ""
    # A library is picked before one of its prompts.
    while not picked or picked.endswith(":"):
        found = [item for item in completer(parsed, picked) if item.type == "plain"]
        if not found:
            return None
        choices = [Choice(item.value, item.help or "") for item in found]
        picked = pick(command.split()[0], choices)
    return picked
