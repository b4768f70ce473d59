"""The hooks of `dittybag connect --hooks`: install, remove and report them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from dittybag.cli.output import format_path, note, print_aside
from dittybag.clients.known_clients import ConfigScope, LocalMachine, McpClient
from dittybag.clients.known_hooks import HOOKS
from dittybag.config import home
from dittybag.domain.text import one_line

if TYPE_CHECKING:
    from dittybag.clients.connector import Launch
    from dittybag.clients.hooks import HooksResult, HooksStatus, HookTarget

#: Maximum length of a message, which may contain a path.
_MAX_LENGTH = 2000


def require_hooks(clients: Sequence[McpClient]) -> None:
    """Raise `click.UsageError` if a client has no hooks."""
    for client in clients:
        if client.name not in HOOKS:
            raise click.UsageError(
                f"{client.title} has no hooks that can add to a conversation; these have: {', '.join(HOOKS)}"
            )


def target_of_hooks(
    client: McpClient, scope: ConfigScope, machine: LocalMachine, *, is_asked: bool
) -> HookTarget | None:
    """Return where a client's hooks are installed, or are to be if `is_asked`; otherwise `None`."""
    from dittybag.clients.hooks import HookTarget

    target = HookTarget.resolve(client, scope, machine)
    if target is None or is_asked:
        return target
    return None if status_of_hooks(target).state in ("absent", "unreadable") else target


def status_of_hooks(target: HookTarget) -> HooksStatus:
    """Return whether hooks are installed and work."""
    from dittybag.assembly.entry_check import entry_problem
    from dittybag.clients.hooks import hooks_status

    return hooks_status(target, entry_problem)


def apply_hooks(
    target: HookTarget,
    launch: Launch,
    machine: LocalMachine,
    *,
    remove: bool,
    dry_run: bool,
    text: str | None,
) -> HooksResult:
    """Install or remove hooks. `text`: for a dry run, what the file will contain before."""
    from dittybag.clients.hooks import hook_command, install_hooks, remove_hooks

    ours = home(os.environ)
    if remove:
        return remove_hooks(target, ours, dry_run=dry_run)
    command = hook_command(launch, target.hooks, machine.platform)
    return install_hooks(target, command, ours, dry_run=dry_run, text=text)


def hooks_data(target: HookTarget, result: HooksResult, *, dry_run: bool) -> dict[str, Any]:
    """Return the result for --json."""
    data = {
        "file": str(target.file),
        "state": result.state,
        "events": list(target.hooks.events),
        "backup": result.backup,
    }
    return data | ({"diff": result.diff} if dry_run else {})


def print_hooks_outcome(target: HookTarget, result: HooksResult) -> None:
    """Print the result for people."""
    file = one_line(format_path(str(target.file)), _MAX_LENGTH)
    events = ", ".join(target.hooks.events)
    messages = {
        "installed": f"Installed hooks ({events}): {file}",
        "updated": f"Updated hooks ({events}): {file}",
        "unchanged": f"Hooks are already installed ({events}): {file}",
        "removed": f"Removed hooks: {file}",
        "absent": f"No hooks were installed: {file}",
    }
    click.echo(messages[result.state])
    if result.backup:
        print_aside(f"backup: {one_line(format_path(result.backup), _MAX_LENGTH)}")
    if target.hooks.note and result.state in ("installed", "updated"):
        note(target.hooks.note)
