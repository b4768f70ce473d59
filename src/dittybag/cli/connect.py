"""`dittybag connect`: add Dittybag to an MCP client, or list the clients."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from dittybag.cli.colours import AMBER, GREEN, GREY, RED
from dittybag.cli.connect_hooks import require_hooks
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
from dittybag.clients.known_clients import CLIENTS, SCOPES, ConfigScope, LocalMachine, McpClient
from dittybag.config import CONNECTED_PROFILE, home, settings_from_process
from dittybag.domain.display import format_count
from dittybag.domain.text import one_line

if TYPE_CHECKING:
    from dittybag.clients.connector import ConfigTarget, ConnectionStatus, ConnectResult, Launch
    from dittybag.clients.hooks import HooksResult, HooksStatus, HookTarget

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
_HOOKS: Final = {
    None: "",
    "installed": "yes",
    "partial": "partly",
    "broken": "broken",
    "outdated": "outdated",
    "absent": "no",
    "unreadable": "cannot be read",
}
_COLOURS: Final = {"connected": GREEN, "broken": RED, "other": AMBER, "unreadable": RED}
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
@click.option(
    "--hooks",
    is_flag=True,
    help="Also install hooks that run `dittybag prime` at the start of a session; with --remove, only those.",
)
@click.option("--remove", is_flag=True, help="Remove the entry and hooks, and restore the files as before.")
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
    yes: bool,
    **mode: bool,
) -> int:
    """Add Dittybag to one or more clients, or list the clients and whether they are connected.

    Only Dittybag's own entry in the client's configuration file is written; the rest of the file stays the
    same, byte for byte, and a backup is made first. The clients are claude-code, claude-desktop, cursor,
    vscode, codex, gemini, windsurf and zed.

    The client works in the project of the folder that it is used in, or with --project in the one with
    that name. With the profile of a contract, it works in the default project.

    \b
    Examples:
      dittybag connect
      dittybag connect claude-code
      dittybag connect codex gemini
      dittybag connect --all
      dittybag connect claude-code --hooks
      dittybag connect cursor --scope project --project website
      dittybag connect zed --dry-run
      dittybag connect zed --remove
    """
    if everything and clients:
        raise click.UsageError("Give either CLIENT or --all")
    if not _NAME.fullmatch(name):
        raise click.UsageError("--name must be 1 to 64 letters, digits, '-' and '_'")
    if profile == _PROJECT_PROFILE and options.project is None and not mode["remove"]:
        raise click.UsageError(f"--profile {profile} serves one project; name it with --project")
    from dittybag.assembly.client_connections import local_machine

    try:
        machine = local_machine()
    except (RuntimeError, OSError) as error:
        report(
            f"Cannot find your home folder or the current folder ({error})", "set HOME, or change the folder"
        )
        return ExitStatus.STORAGE
    scope_name, launch = scope or "user", _launch(options, profile)
    if everything:
        targets = _all_targets(machine, scope_name, name, launch, **mode)
        if not (mode["dry_run"] or _confirm(targets, yes=yes, is_removal=mode["remove"])):
            return ExitStatus.REFUSED
        return _apply_all(targets, launch, machine, is_list=True, **mode)
    if clients:
        if mode["hooks"]:
            require_hooks([CLIENTS[each] for each in clients])
        targets = [_target(CLIENTS[each], scope_name, machine, name) for each in dict.fromkeys(clients)]
        return _apply_all(targets, launch, machine, is_list=len(clients) > 1, **mode)
    if any(mode.values()) or scope is not None:
        raise click.UsageError("CLIENT is required with these options: one of " + ", ".join(CLIENTS))
    _list_clients(machine, name, launch)
    return ExitStatus.OK


def _all_targets(
    machine: LocalMachine, scope: ConfigScope, name: str, launch: Launch, **mode: bool
) -> list[ConfigTarget]:
    """Return the files of all installed clients; for a removal, of those that have an entry or hooks."""

    def is_chosen(status: ConnectionStatus, hooks: HooksStatus | None, *, is_found: bool) -> bool:
        has_hooks = hooks is not None and hooks.state != "absent"
        if mode["remove"]:
            return has_hooks or (status.state != "absent" and not mode["hooks"])
        return is_found

    return [
        target
        for target, is_found, status, hooks in _statuses(machine, name, launch)
        if target.scope == scope and is_chosen(status, hooks, is_found=is_found)
    ]


def _confirm(targets: Sequence[ConfigTarget], *, yes: bool, is_removal: bool) -> bool:
    names = ", ".join(target.client.title for target in targets)
    return not targets or confirm(f"{'Disconnect' if is_removal else 'Connect'} {names}?", yes=yes)


def _apply_all(
    targets: Sequence[ConfigTarget],
    launch: Launch,
    machine: LocalMachine,
    *,
    is_list: bool,
    hooks: bool,
    remove: bool,
    dry_run: bool,
) -> int:
    """Edit the files of clients. One that fails does not stop the others.

    `is_list`: print a list as JSON also for one client.
    """
    done: list[dict[str, Any]] = []
    failed: list[ClientFileError] = []
    for target in targets:
        is_found = _is_installed(target.client, machine)
        try:
            done.append(_apply(target, launch, machine, hooks=hooks, remove=remove, dry_run=dry_run))
        except ClientFileError as error:
            failed.append(error)
            message = one_line(str(error), _MAX_LENGTH)
            done.append({"client": target.client.name, "error": {"code": error.code, "message": message}})
            if not (wants_json() and is_list):
                report(message, error.advice, code=error.code)
            continue
        if not (wants_json() or remove or dry_run):
            _print_next_steps(target, launch, is_found=is_found)
    if is_list:
        print_result({"clients": done})
        print_aside(_summary(len(done), len(failed), is_removal=remove))
    elif wants_json() and not failed:
        print_json(done[0])
    return _STATUSES[type(failed[0])] if failed else ExitStatus.OK


def client_statuses() -> list[tuple[ConfigTarget, ConnectionStatus, HooksStatus | None]]:
    """Return the clients on this machine, whether they start this program, and the state of their hooks."""
    from dittybag.assembly.client_connections import local_machine

    statuses = _statuses(local_machine(), "dittybag", _launch(WorkspaceOptions(None, None), None))
    return [(target, status, hooks) for target, _, status, hooks in statuses]


def _target(client: McpClient, scope: ConfigScope, machine: LocalMachine, name: str) -> ConfigTarget:
    from dittybag.clients.connector import ConfigTarget

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


def _apply(
    target: ConfigTarget, launch: Launch, machine: LocalMachine, *, hooks: bool, remove: bool, dry_run: bool
) -> dict[str, Any]:
    """Edit the files of a client, print what was done for people, and return it as data.

    Hooks that are installed already are kept in step with the entry.
    """
    from dittybag.cli.connect_hooks import hooks_data, print_hooks_outcome, target_of_hooks

    hook_file = target_of_hooks(target.client, target.scope, machine, is_asked=hooks)
    # Before something is written, both files are checked.
    outcome, hook_outcome = _edit(
        target, hook_file, launch, machine, hooks=hooks, remove=remove, dry_run=True
    )
    if not dry_run:
        outcome, hook_outcome = _edit(
            target, hook_file, launch, machine, hooks=hooks, remove=remove, dry_run=False
        )
    data = _entry_data(target, outcome, dry_run=dry_run)
    if hook_file is not None and hook_outcome is not None:
        data["hooks"] = hooks_data(hook_file, hook_outcome, dry_run=dry_run)
    if wants_json():
        return data
    if dry_run:
        results = (hook_outcome, outcome) if remove else (outcome, hook_outcome)
        diffs = [result.diff for result in results if result is not None and result.diff]
        for diff in diffs:
            print_diff(diff.split("\n"))
        if not diffs:
            click.echo("No changes", err=True)
        return data
    if outcome is not None:
        _print_outcome(target, outcome)
    if hook_file is not None and hook_outcome is not None:
        print_hooks_outcome(hook_file, hook_outcome)
    elif hooks:
        note(f"{target.client.title} has no hooks that can add to a conversation")
    return data


def _edit(
    target: ConfigTarget,
    hook_file: HookTarget | None,
    launch: Launch,
    machine: LocalMachine,
    *,
    hooks: bool,
    remove: bool,
    dry_run: bool,
) -> tuple[ConnectResult | None, HooksResult | None]:
    """Edit the entry, then the hooks; a removal is the other way round. They may be in one file."""
    from dittybag.cli.connect_hooks import apply_hooks

    outcome = hook_outcome = text = None
    if remove and hook_file is not None:
        hook_outcome = apply_hooks(hook_file, launch, machine, remove=True, dry_run=dry_run, text=None)
        text = hook_outcome.text if dry_run and hook_file.file == target.file else None
    if not (remove and hooks):
        outcome = _change_entry(target, launch, remove=remove, dry_run=dry_run, text=text)
        is_shared = hook_file is not None and hook_file.file == target.file
        text = outcome.text if dry_run and is_shared else None
    if not remove and hook_file is not None:
        hook_outcome = apply_hooks(hook_file, launch, machine, remove=False, dry_run=dry_run, text=text)
    return outcome, hook_outcome


def _change_entry(
    target: ConfigTarget, launch: Launch, *, remove: bool, dry_run: bool, text: str | None
) -> ConnectResult:
    from dittybag.assembly.entry_check import entry_problem
    from dittybag.clients.connector import connect, disconnect

    ours = home(os.environ)
    if remove:
        return disconnect(target, ours, check=entry_problem, dry_run=dry_run, text=text)
    return connect(target, launch, ours, check=entry_problem, dry_run=dry_run)


def _entry_data(target: ConfigTarget, outcome: ConnectResult | None, *, dry_run: bool) -> dict[str, Any]:
    """Return the result for --json; without an outcome, only what it is about."""
    data: dict[str, Any] = {"client": target.client.name, "scope": target.scope, "file": str(target.file)}
    if outcome is None:
        return data
    data |= {"state": outcome.state, "backup": outcome.backup}
    return data | ({"diff": outcome.diff} if dry_run else {})


def _print_outcome(target: ConfigTarget, outcome: ConnectResult) -> None:
    title, file = target.client.title, one_line(format_path(str(target.file)), _MAX_LENGTH)
    messages = {
        "connected": f"Connected {title}: {file}",
        "updated": f"Updated {title}: {file}",
        "unchanged": f"{title} is already connected: {file}",
        "removed": f"Disconnected {title}: {file}",
        "absent": f"{title} was not connected: {file}",
    }
    click.echo(messages[outcome.state])
    if outcome.has_previous and outcome.state == "removed":
        note(f"the entry '{target.name}' that existed before was restored")
    elif outcome.has_previous:
        note(f"an existing entry '{target.name}' was replaced; --remove restores it")
    if outcome.backup:
        print_aside(f"backup: {one_line(format_path(outcome.backup), _MAX_LENGTH)}")


def _print_next_steps(target: ConfigTarget, launch: Launch, *, is_found: bool) -> None:
    from dittybag.assembly.entry_check import entry_problem

    client = target.client
    if (problem := entry_problem(launch.entry(client))) is not None:
        note(f"{one_line(problem, _MAX_LENGTH)}")
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
                    "outdated": dict(status.outdated),
                    "problem": status.problem or None,
                    "file": str(target.file),
                    "hooks": None if hooks is None else hooks.state,
                }
                for target, found, status, hooks in rows
            ]
        },
        ("client", "scope", "found", "state", "hooks", "file"),
        [
            (
                target.client.name,
                target.scope,
                "yes" if found else "no",
                _state(status, name),
                _HOOKS[None if hooks is None else hooks.state],
                one_line(format_path(str(target.file)), _MAX_LENGTH),
            )
            for target, found, status, hooks in rows
        ],
        shrinkable=(3, 5),
        styles=lambda row: {"fg": None if rows[row][1] else GREY},
        cell_styles=lambda row, name: (
            {"fg": _COLOURS[rows[row][2].state]} if name == "state" and rows[row][2].state in _COLOURS else {}
        ),
    )
    if any(found and status.state == "absent" for _, found, status, _ in rows):
        hint("to connect clients, run: dittybag connect CLIENT..., or dittybag connect --all")


def _statuses(
    machine: LocalMachine, name: str, launch: Launch
) -> Iterator[tuple[ConfigTarget, bool, ConnectionStatus, HooksStatus | None]]:
    from dittybag.assembly.entry_check import entry_problem
    from dittybag.assembly.outdated_entries import outdated_entries
    from dittybag.cli.connect_hooks import status_of_hooks
    from dittybag.clients.connector import ConfigTarget, connection_status
    from dittybag.clients.hooks import HookTarget

    for client in CLIENTS.values():
        found = _is_installed(client, machine)
        for scope in SCOPES:
            target = ConfigTarget.resolve(client, scope, machine, name)
            hooks = HookTarget.resolve(client, scope, machine)
            hooks_status = None if hooks is None else status_of_hooks(hooks)
            has_hooks = hooks_status is not None and hooks_status.state != "absent"
            if target is not None and (scope == "user" or has_hooks or os.path.lexists(target.file)):
                status = connection_status(target, launch, entry_problem)
                outdated = outdated_entries(target, home(os.environ))
                yield target, found, msgspec.structs.replace(status, outdated=outdated), hooks_status


def _is_installed(client: McpClient, machine: LocalMachine) -> bool:
    """Whether the client was found, apart from what Dittybag has created."""
    from dittybag.clients.hooks import created_paths

    return client.is_installed(machine, created_paths(client, machine, home(os.environ)))


def _state(status: ConnectionStatus, name: str) -> str:
    if status.state == "connected":
        others = ", ".join(other for other in status.names if other != name)
        state = f"connected as {one_line(others)}" if name not in status.names else "connected"
        return "; ".join([state, *_outdated(status), *map(_broken_entry, status.broken.items())])
    if status.state == "broken" and name not in status.broken:
        return "; ".join(map(_broken_entry, status.broken.items()))
    if status.outdated:
        return "; ".join(_outdated(status))
    label = _STATES[status.state]
    return f"{label}: {one_line(status.problem)}" if status.problem else label


def _outdated(status: ConnectionStatus) -> list[str]:
    return [f"{one_line(name)} is outdated: {one_line(reason)}" for name, reason in status.outdated.items()]


def _broken_entry(entry: tuple[str, str]) -> str:
    name, problem = entry
    return f"{one_line(name)} is broken: {one_line(problem)}"
