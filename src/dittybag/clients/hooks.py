"""Install hooks that run `dittybag prime` in a client, remove them, and report whether they are installed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from dittybag.clients import config_files
from dittybag.clients.client_errors import ClientFileError, ClientFileRefused, MalformedConfig
from dittybag.clients.connector import (
    EntryCheck,
    Launch,
    assume_working,
    is_encodable,
    parse_launch,
    resolve_links,
)
from dittybag.clients.edit_records import EditRecord, EditRecords
from dittybag.clients.entry_edits import (
    Entry,
    EntryChange,
    EntryState,
    PlannedChange,
    change_file,
    plan_removal,
    plan_write,
)
from dittybag.clients.hook_format import HookFormat
from dittybag.clients.known_clients import ConfigScope, LocalMachine, McpClient
from dittybag.clients.known_hooks import HOOKS, ClientHooks

_PRIME: Final = "prime"
#: Options of `dittybag serve` that `dittybag prime` has, too.
_SHARED_OPTIONS: Final = ("--workspace", "--db", "--project")
_WINDOWS_PATH: Final = re.compile(r'"?(?:[A-Za-z]:\\|\\\\)')

HooksState = Literal["installed", "unchanged", "updated", "removed", "absent"]


class HookTarget(Struct, frozen=True):
    """The file in which a client's hooks are installed. It may not exist."""

    client: McpClient
    scope: ConfigScope
    hooks: ClientHooks
    #: With symbolic links resolved.
    file: Path

    @staticmethod
    def resolve(client: McpClient, scope: ConfigScope, machine: LocalMachine) -> HookTarget | None:
        """Return `None` if the client has no hooks. Raises `ClientFileRefused`."""
        hooks = HOOKS.get(client.name)
        if hooks is None:
            return None
        file = resolve_links(hooks.file(scope, machine))
        if not is_encodable(str(file)):
            raise ClientFileRefused(ascii(str(file)), "the path is not UTF-8 text")
        return HookTarget(client, scope, hooks, file)


class HooksResult(Struct, frozen=True, kw_only=True):
    """The result of installing or removing hooks, or of a dry run."""

    state: HooksState
    backup: str | None = None
    #: What the file contains, or would contain.
    text: str = ""
    diff: str = ""


class HooksStatus(Struct, frozen=True, kw_only=True):
    """Whether a client runs `dittybag prime`."""

    #: `partial`: not for every event; `broken`: a hook does not work; `outdated`: an older version wrote it.
    state: Literal["installed", "partial", "broken", "outdated", "absent", "unreadable"]
    events: tuple[str, ...] = ()
    problem: str = ""


def hook_command(launch: Launch, hooks: ClientHooks, platform: str) -> str:
    """The shell command that prints the context of the workspace that a client is connected to."""
    given = launch.arguments
    options = [
        part
        for name, value in pairwise(given)
        # The project of the folder is the default.
        if name in _SHARED_OPTIONS and (name, value) != ("--project", "auto")
        for part in (name, value)
    ]
    output = [] if hooks.output == "text" else ["--format", hooks.output]
    # The agent is told what others have changed, also its user.
    words = [launch.command, *launch.prefix, _PRIME, *options, "--actor", hooks.actor, *output]
    if platform == "win32":
        return subprocess.list2cmdline(words)
    variables = [f"{name}={value}" for name, value in launch.variables.items()]
    return shlex.join(["env", *variables, *words] if variables else words)


def install_hooks(
    target: HookTarget, command: str, home: str, *, dry_run: bool = False, text: str | None = None
) -> HooksResult:
    """Install the hooks of a client. Raises `ClientFileError`. See `change_file` for `text`."""
    if not is_encodable(command):
        raise ClientFileRefused(str(target.file), f"{command!a} is not UTF-8 text")
    if target.client.would_expand(command):
        problem = f"{target.client.title} would expand a variable in '{command}'"
        raise ClientFileRefused(str(target.file), problem)

    def plan_refresh(event: str) -> EntryChange:
        return EntryChange(
            _record(event), lambda text, records: _plan_refresh(target, event, text, command, records)
        )

    def plan_install(event: str) -> EntryChange:
        return EntryChange(
            _record(event), lambda text, records: _plan_install(target, event, text, command, records)
        )

    # An outdated hook is removed and added again: a later one may be in what was created for an earlier one.
    events = tuple(target.hooks.events)
    changes = [*map(plan_refresh, reversed(events)), *map(plan_install, events)]
    return _change(target, changes, home, dry_run=dry_run, text=text)


def remove_hooks(target: HookTarget, home: str, *, dry_run: bool = False) -> HooksResult:
    """Remove the hooks of a client and restore the file. Raises `ClientFileError`."""

    def plan(event: str) -> EntryChange:
        return EntryChange(
            _record(event), lambda text, records: plan_removal(_entry(target, event), text, records)
        )

    changes = [plan(event) for event in reversed(tuple(target.hooks.events))]
    return _change(target, changes, home, dry_run=dry_run)


def hooks_status(target: HookTarget, check: EntryCheck = assume_working) -> HooksStatus:
    """Whether a client's file has hooks that run `dittybag prime`, and whether they work.

    `check` gets the entry of a server that uses the same workspace.
    """
    try:
        text = config_files.read(target.file).text
        entries = _format(target).entries(text)
    except (ClientFileError, MalformedConfig) as error:
        problem = error.problem if isinstance(error, ClientFileError) else str(error)
        return HooksStatus(state="unreadable", problem=problem)
    events = tuple(event for event in target.hooks.events if event in entries)
    for event in events:
        for handler in _handlers(entries[event]):
            server = _server_entry(handler)
            if server is not None and (reason := check(server)) is not None:
                return HooksStatus(state="broken", events=events, problem=reason)
    if not events:
        return HooksStatus(state="absent")
    if len(events) < len(target.hooks.events):
        return HooksStatus(state="partial", events=events)
    is_outdated = any(_is_outdated(target, entries[event]) for event in events)
    return HooksStatus(state="outdated" if is_outdated else "installed", events=events)


def created_paths(client: McpClient, machine: LocalMachine, home: str) -> set[Path]:
    """The user's files of a client, and their folders, as far as Dittybag has created them."""
    files = [client.file("user", machine)]
    if client.name in HOOKS:
        files.append(HOOKS[client.name].file("user", machine))
    records = EditRecords(home)
    return {path for file in files if file is not None for path in records.created_paths(resolve_links(file))}


def _plan_refresh(
    target: HookTarget, event: str, text: str, command: str, records: tuple[EditRecord, ...]
) -> PlannedChange:
    """Plan to remove a hook with another command that is as Dittybag has written it."""
    entry = _entry(target, event)
    found = entry.format.find(text, event)
    old = [handler.get("command") for handler in _handlers(found.value)] if found else []
    if records and found and old != [command] and found.value == target.hooks.value(str(old[0])):
        return plan_removal(entry, text, records)
    return PlannedChange(state="unchanged", text=text)


def _plan_install(
    target: HookTarget, event: str, text: str, command: str, records: tuple[EditRecord, ...]
) -> PlannedChange:
    entry = _entry(target, event)
    found = entry.format.find(text, event)
    if found is None:
        return plan_write(entry, text, target.hooks.value(command), records)
    if any(handler.get("command") == command for handler in _handlers(found.value)):
        return PlannedChange(state="unchanged", text=text)
    if not entry.is_own(found.value):
        raise MalformedConfig(f"{entry.foreign}; change its command manually")
    return plan_write(entry, text, _with_command(found.value, command), records)


def _is_outdated(target: HookTarget, value: Any) -> bool:
    """Whether a hook is as Dittybag has written it, but with another command than it writes now."""
    for handler in _handlers(value):
        launch = parse_launch(_server_entry(handler))
        if launch is not None and value == target.hooks.value(handler["command"]):
            now = hook_command(launch, target.hooks, sys.platform)
            return _split(handler["command"]) != _split(now)
    return False


def _with_command(value: Mapping[str, Any], command: str) -> dict[str, Any]:
    """A hook of Dittybag with another command, and with the fields that the user has changed."""
    if isinstance(value.get("hooks"), list):
        return {**value, "hooks": [{**value["hooks"][0], "command": command}]}
    return {**value, "command": command}


def _change(
    target: HookTarget, changes: list[EntryChange], home: str, *, dry_run: bool, text: str | None = None
) -> HooksResult:
    result = change_file(
        target.file,
        changes,
        home,
        label=f"{target.client.name}-{target.scope}-hooks",
        is_private=target.scope == "user",
        dry_run=dry_run,
        text=text,
    )
    return HooksResult(
        state=_combined_state(result.states), backup=result.backup, text=result.text, diff=result.diff
    )


def _combined_state(states: tuple[EntryState, ...]) -> HooksState:
    found = set(states)
    if "added" in found:
        return (
            "installed" if states.count("added") * 2 == len(states) and "removed" not in found else "updated"
        )
    return next((state for state in ("updated", "removed", "absent") if state in found), "unchanged")


def _entry(target: HookTarget, event: str) -> Entry:
    return Entry(
        target.file,
        event,
        _format(target),
        record=_record(event),
        is_own=lambda value: all(map(_runs_prime, _handlers(value))),
        is_broken=lambda value: False,
        foreign=f"the hook for '{event}' is in a group with other commands",
    )


def _record(event: str) -> str:
    # The dot keeps it apart from the entries of servers, which may be in the same file.
    return f"hooks.{event}"


def _format(target: HookTarget) -> HookFormat:
    return HookFormat(
        is_own=lambda value: any(map(_runs_prime, _handlers(value))), header=target.hooks.header
    )


def _handlers(value: Any) -> list[dict[str, Any]]:
    """The commands of a hook: those of a group, or the hook itself."""
    if not isinstance(value, dict):
        return []
    handlers = value["hooks"] if isinstance(value.get("hooks"), list) else [value]
    return [handler for handler in handlers if isinstance(handler, dict)]


def _runs_prime(handler: Mapping[str, Any]) -> bool:
    return _server_entry(handler) is not None


def _server_entry(handler: Mapping[str, Any]) -> dict[str, Any] | None:
    """The entry of a server with the options of a hook's command; `None` if it is not Dittybag's."""
    command = handler.get("command")
    words = _split(command) if isinstance(command, str) else []
    if _PRIME not in words:
        return None
    at = words.index(_PRIME)
    before, variables = words[:at], {}
    if before[:1] == ["env"]:
        before = before[1:]
        while before and "=" in before[0]:
            name, _, variables[name] = before.pop(0).partition("=")
    if not before:
        return None
    if before[-1].rpartition("/")[2].removesuffix(".exe") != "dittybag":
        return None
    entry = {"command": before[0], "args": [*before[1:], "serve", *words[at + 1 :]]}
    return entry | ({"env": variables} if variables else {})


def _split(command: str) -> list[str]:
    # In a path of Windows, a backslash separates folders.
    is_windows = _WINDOWS_PATH.match(command) is not None
    try:
        return shlex.split(command.replace("\\", "/") if is_windows else command)
    except ValueError:
        return []
