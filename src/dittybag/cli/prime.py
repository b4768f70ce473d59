"""`dittybag prime`: print what an agent should know when it starts, for hooks of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import click
import msgspec
from msgspec.structs import replace

from dittybag.cli.output import write_text
from dittybag.cli.read_input import text
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.config import local_user_name
from dittybag.domain.projects import AUTOMATIC, DEFAULT_PROJECT
from dittybag.domain.queries import MAX_BUDGET, MIN_BUDGET, PackRequest
from dittybag.domain.token_estimate import estimate_tokens

if TYPE_CHECKING:
    from dittybag.services.workspace import WorkspaceSession

#: The budget, in tokens, of the summary, and of a summary with a context pack.
_SUMMARY: Final = 200
_PACK: Final = 1500
#: Plain text, JSON with `hookSpecificOutput` (Claude Code, Codex, Gemini CLI, VS Code), or Cursor's JSON.
HookOutput = Literal["text", "hook", "cursor"]


@click.command("prime", StrictCommand)
@click.option(
    "--budget",
    type=click.IntRange(MIN_BUDGET, MAX_BUDGET),
    help=f"About the maximum size in tokens: by default {_SUMMARY}, or {_PACK} with --task or --query.",
)
@click.option("--task", type=click.IntRange(1, 2**53), help="The task that the agent works on.")
@click.option("--query", type=text, default="", help="What the agent works on, in words.")
@click.option("--actor", type=text, help="Name of the agent in the change log, to leave out its own changes.")
@click.option(
    "--format",
    "output",
    type=click.Choice(get_args(HookOutput)),
    default="text",
    show_default=True,
    help="What the hook of the client reads: plain text, or one of two forms of JSON.",
)
@click.option("--verbose", is_flag=True, help="Print errors, which are otherwise only logged.")
@in_project
def command(
    options: WorkspaceOptions,
    *,
    budget: int | None,
    task: int | None,
    query: str,
    actor: str | None,
    output: HookOutput,
    verbose: bool,
) -> None:
    """Print what the current folder's project has, for a hook that starts an agent.

    That is a summary: tasks in work and ready, counts, and the newest names. A larger budget adds a context
    pack. On any failure, or after a second, it prints nothing, exits with 0 and appends a line to prime.log
    in the data folder. It never creates a workspace.

    \b
    Examples:
      dittybag prime
      dittybag prime --budget 800 --task 12
      dittybag prime --query "login page" --verbose
    """
    from dittybag.assembly.workspace_session import run_in_session

    settings = options.settings
    if options.project is None and settings.project == DEFAULT_PROJECT:
        settings = replace(settings, project=AUTOMATIC)
    settings = replace(settings, read_only=True)
    room = budget or (_SUMMARY if task is None and not query else _PACK)

    async def make(session: WorkspaceSession) -> str:
        packs, caller = session.workspace.packs, session.caller
        summary = await packs.summarize(caller, _SUMMARY)
        rest = room - estimate_tokens(summary)
        if rest < MIN_BUDGET:
            return summary
        pack = await packs.make(caller, PackRequest(task=task, query=query, budget=rest))
        return f"{summary}\n{pack.text}" if pack.entries else summary

    text = run_in_session(settings, actor or settings.actor or local_user_name(), make)
    if text:
        write_text(_hook_output(text, output))


def _hook_output(text: str, output: HookOutput) -> str:
    """Return what a hook prints so that the client adds a text to the conversation."""
    if output == "text":
        return text
    data: Any = {"additional_context": text}
    if output == "hook":
        data = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}
    return msgspec.json.encode(data).decode()
