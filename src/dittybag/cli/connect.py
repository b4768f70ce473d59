"""`dittybag connect`: add Dittybag to an MCP client, or list the clients."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import click

from dittybag.cli.colours import AMBER, GREEN, GREY, RED
from dittybag.cli.error_output import ExitStatus, report, wants_json
from dittybag.cli.output import (
    confirm,
    format_path,
    hint,
    note,
    print_aside,
    print_diff,
    print_json,
    print_list,
    print_result,
)
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.workspace_options import WorkspaceOptions, in_project
from dittybag.clients.client_errors import (
    ClientEntryForeign,
    ClientFileBusy,
    ClientFileError,
    ClientFileRefused,
    ClientFileUnreachable,
)
from dittybag.clients.connector import (
    ConfigTarget,
    ConnectionStatus,
    Launch,
    connect,
    connection_status,
    disconnect,
    is_installed,
)
from dittybag.clients.known_clients import CLIENTS, SCOPES, ConfigScope, LocalMachine, McpClient
from dittybag.config import CONNECTED_PROFILE, home, settings_from_process
from dittybag.domain.display import format_count
from dittybag.domain.text import one_line

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_STATUSES: Final = {
    ClientFileRefused: ExitStatus.REFUSED,
    ClientEntryForeign: ExitStatus.CONFLICT,
    ClientFileBusy: ExitStatus.CONFLICT,
    ClientFileUnreachable: ExitStatus.STORAGE,
}
_STATES: Final = {
    "broken": "broken",
    "other": "starts another program",
    "absent": "not connected",
    "unreadable": "cannot be read",
}
_COLOURS: Final = {"connected": GREEN, "broken": RED, "other": AMBER, "unreadable": RED}
_MESSAGES: Final = {
    "connected": "Connected {}: {}",
    "updated": "Updated {}: {}",
    "unchanged": "{} is already connected: {}",
    "removed": "Disconnected {}: {}",
    "absent": "{} was not connected: {}",
}
#: The contract whose server has the content of one project.
_PROJECT_PROFILE: Final = "mcpkg"
#: Maximum length of a message, which may contain a path and the message of a parser.
_MAX_LENGTH: Final = 2000


@click.command("connect", StrictCommand)
@click.argument("clients", type=click.Choice(tuple(CLIENTS)), metavar="[CLIENT]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All clients that are installed on this machine.")
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    default=None,
    help="All your projects (default), or the project in the current folder.",
)
@click.option(
    "--name",
    default="dittybag",
    show_default=True,
    metavar="NAME",
    help="Name of the entry in the client's configuration.",
)
@click.option(
    "--profile",
    metavar="NAME",
    help=f"Profile to serve (default: {CONNECTED_PROFILE}); see `dittybag serve --help`.",
)
@click.option("--remove", is_flag=True, help="Remove the entry, and nothing else.")
@click.option("--dry-run", is_flag=True, help="Show the changes to the file, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation, as --all does.")
@in_project
def command(
    clients: tuple[str, ...],
    scope: ConfigScope | None,
    name: str,
    profile: str | None,
    options: WorkspaceOptions,
    *,
    everything: bool,
    remove: bool,
    dry_run: bool,
    yes: bool,
) -> int:
    """Add Dittybag to one or more clients, or list the clients and whether they are connected.

    Only Dittybag's own entry in the client's configuration file is written, and a copy of the file is kept
    until the entry is removed. The clients are claude-code, claude-desktop, cursor, vscode, codex, gemini,
    windsurf and zed.

    The client works in the project of the folder that it is used in, or with --project in the one with
    that name. With the profile of a contract, it works in the default project.

    \b
    Examples:
      dittybag connect
      dittybag connect claude-code
      dittybag connect codex gemini
      dittybag connect --all
      dittybag connect cursor --scope project --project website
      dittybag connect zed --dry-run
      dittybag connect zed --remove
    """
    if everything and clients:
        raise click.UsageError("Give either CLIENT or --all")
    if not _NAME.fullmatch(name):
        raise click.UsageError("--name must be 1 to 64 letters, digits, '-' and '_'")
    if profile == _PROJECT_PROFILE and options.project is None and not remove:
        raise click.UsageError(f"--profile {profile} serves one project; name it with --project")
    from dittybag.assembly.client_connections import local_machine

    try:
        machine = local_machine()
    except (RuntimeError, OSError) as error:
        problem = f"Cannot find your home folder or the current folder ({error})"
        report(problem, "set HOME, or change the folder")
        return ExitStatus.STORAGE
    scope_name, launch = scope or "user", _launch(options, profile)
    edit = partial(_apply_all, launch=launch, machine=machine, remove=remove, dry_run=dry_run)
    if everything:
        targets = [
            target
            for target, is_found, status in _statuses(machine, name, launch)
            if target.scope == scope_name and (status.state != "absent" if remove else is_found)
        ]
        if not (dry_run or _confirm(targets, yes=yes, is_removal=remove)):
            return ExitStatus.REFUSED
        return edit(targets, is_list=True)
    if clients:
        targets = [_target(CLIENTS[each], scope_name, machine, name) for each in dict.fromkeys(clients)]
        return edit(targets, is_list=len(clients) > 1)
    if remove or dry_run or scope is not None:
        raise click.UsageError("CLIENT is required with these options: one of " + ", ".join(CLIENTS))
    _list_clients(machine, name, launch)
    return ExitStatus.OK


def _confirm(targets: Sequence[ConfigTarget], *, yes: bool, is_removal: bool) -> bool:
    names = ", ".join(target.client.title for target in targets)
    return not targets or confirm(f"{'Disconnect' if is_removal else 'Connect'} {names}?", yes=yes)


def _apply_all(
    targets: Sequence[ConfigTarget],
    *,
    launch: Launch,
    machine: LocalMachine,
    is_list: bool,
    remove: bool,
    dry_run: bool,
) -> int:
    """Edit the files of clients. One that fails does not stop the others.

    `is_list`: print a list as JSON also for one client.
    """
    done: list[dict[str, Any]] = []
    failed: list[ClientFileError] = []
    for target in targets:
        is_found = is_installed(target.client, machine, home(os.environ))
        try:
            done.append(_apply(target, launch, remove=remove, dry_run=dry_run))
        except ClientFileError as error:
            failed.append(error)
            message = one_line(str(error), _MAX_LENGTH)
            done.append({"client": target.client.name, "error": {"code": error.code, "message": message}})
            if not (wants_json() and is_list):
                report(message, error.advice, code=error.code)
            continue
        if not (wants_json() or remove or dry_run):
            _print_next_steps(target, is_found=is_found)
    if is_list:
        print_result({"clients": done})
        print_aside(_summary(len(done), len(failed), is_removal=remove))
    elif wants_json() and not failed:
        print_json(done[0])
    return _STATUSES[type(failed[0])] if failed else ExitStatus.OK


def client_statuses() -> list[tuple[ConfigTarget, ConnectionStatus]]:
    """Return the clients on this machine, and whether they start this program."""
    from dittybag.assembly.client_connections import local_machine

    statuses = _statuses(local_machine(), "dittybag", _launch(WorkspaceOptions(None, None), None))
    return [(target, status) for target, _, status in statuses]


def _target(client: McpClient, scope: ConfigScope, machine: LocalMachine, name: str) -> ConfigTarget:
    target = ConfigTarget.resolve(client, scope, machine, name)
    if target is None:
        raise click.UsageError(f"{client.title} has no project configuration; omit --scope project")
    return target


def _launch(options: WorkspaceOptions, profile: str | None) -> Launch:
    """Return how a client starts this program with these options. Raises `SettingsError`."""
    from dittybag.assembly.client_connections import absolute_database, launch, serve_options

    settings = options.settings
    if profile is not None:
        from dittybag.assembly.server_setup import check_profile_and_toolsets

        check_profile_and_toolsets(settings_from_process(profile=profile))
    given = {
        "--workspace": options.workspace,
        "--db": None if options.db is None else absolute_database(settings),
        "--project": options.project,
        "--profile": profile,
    }
    return launch(settings, serve_options(given))


def _summary(count: int, failed: int, *, is_removal: bool) -> str:
    if not count:
        return "No client has an entry" if is_removal else "No MCP client was found on this machine"
    return f"{format_count(count, 'client')}, {failed} failed" if failed else format_count(count, "client")


def _apply(target: ConfigTarget, launch: Launch, *, remove: bool, dry_run: bool) -> dict[str, Any]:
    """Edit the file of a client, print what was done for people, and return it as data."""
    ours = home(os.environ)
    outcome = (
        disconnect(target, ours, dry_run=dry_run)
        if remove
        else connect(target, launch, ours, dry_run=dry_run)
    )
    if wants_json():
        data: dict[str, Any] = {"client": target.client.name, "scope": target.scope, "file": str(target.file)}
        data |= {"state": outcome.state, "backup": outcome.backup}
        return data | ({"diff": outcome.diff} if dry_run else {})
    if not dry_run:
        file = one_line(format_path(str(target.file)), _MAX_LENGTH)
        click.echo(_MESSAGES[outcome.state].format(target.client.title, file))
        if outcome.backup:
            print_aside(f"backup: {one_line(format_path(outcome.backup), _MAX_LENGTH)}")
    elif outcome.diff:
        print_diff(outcome.diff.split("\n"))
    else:
        click.echo("No changes", err=True)
    return {}


def _print_next_steps(target: ConfigTarget, *, is_found: bool) -> None:
    client = target.client
    if not is_found:
        note(f"{client.title} does not seem to be installed")
    if target.scope == "project":
        note("the entry contains paths of this machine; other users may need their own")
        if client.project_note:
            note(f"{client.project_note}")
    print_aside(f"next: {client.next_step}")


def _list_clients(machine: LocalMachine, name: str, launch: Launch) -> None:
    rows = list(_statuses(machine, name, launch))
    print_list(
        {
            "clients": [
                {
                    "client": target.client.name,
                    "title": target.client.title,
                    "scope": target.scope,
                    "found": found,
                    "state": status.state,
                    "names": status.names,
                    "broken": dict(status.broken),
                    "problem": status.problem or None,
                    "file": str(target.file),
                }
                for target, found, status in rows
            ]
        },
        ("client", "scope", "found", "state", "file"),
        [
            (
                target.client.name,
                target.scope,
                "yes" if found else "no",
                _state(status, name),
                one_line(format_path(str(target.file)), _MAX_LENGTH),
            )
            for target, found, status in rows
        ],
        shrinkable=(3, 4),
        styles=lambda row: {"fg": None if rows[row][1] else GREY},
        cell_styles=lambda row, name: (
            {"fg": _COLOURS[rows[row][2].state]} if name == "state" and rows[row][2].state in _COLOURS else {}
        ),
    )
    if any(found and status.state == "absent" for _, found, status in rows):
        hint("to connect clients, run: dittybag connect CLIENT..., or dittybag connect --all")


def _statuses(
    machine: LocalMachine, name: str, launch: Launch
) -> Iterator[tuple[ConfigTarget, bool, ConnectionStatus]]:
    for client in CLIENTS.values():
        found = is_installed(client, machine, home(os.environ))
        for scope in SCOPES:
            target = ConfigTarget.resolve(client, scope, machine, name)
            if target is not None and (scope == "user" or os.path.lexists(target.file)):
                yield target, found, connection_status(target, launch)


def _state(status: ConnectionStatus, name: str) -> str:
    broken = [f"{one_line(other)} is broken: {one_line(problem)}" for other, problem in status.broken.items()]
    if status.state == "connected":
        others = ", ".join(other for other in status.names if other != name)
        state = f"connected as {one_line(others)}" if name not in status.names else "connected"
        return "; ".join([state, *broken])
    if status.state == "broken" and name not in status.broken:
        return "; ".join(broken)
    label = _STATES[status.state]
    return f"{label}: {one_line(status.problem)}" if status.problem else label
