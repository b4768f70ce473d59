"""Connect a client to Dittybag, disconnect it, and report whether it is connected."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from dittybag.clients import config_files
from dittybag.clients.client_errors import (
    ClientEntryForeign,
    ClientFileBusy,
    ClientFileError,
    ClientFileRefused,
    MalformedConfig,
)
from dittybag.clients.config_files import ConfigFileChanged, ConfigFileContent, FileCopy
from dittybag.clients.known_clients import ConfigScope, LocalMachine, McpClient
from dittybag.text_diff import unified_diff

_HOME: Final = "DITTYBAG_HOME"
#: The keys that Dittybag writes; the user may have added others.
_OWN_KEYS: Final = ("type", "command", "args", "env")
_ATTEMPTS: Final = 5

ConnectState = Literal["connected", "unchanged", "updated", "removed", "absent"]


class Launch(Struct, frozen=True):
    """How a client starts Dittybag."""

    command: str
    #: Arguments before Dittybag's own, such as `-m dittybag` for Python.
    prefix: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ("serve",)
    variables: Mapping[str, str] = {}

    def entry(self, client: McpClient) -> dict[str, Any]:
        """The entry in the client's configuration file."""
        entry: dict[str, Any] = {"type": "stdio"} if client.has_type_field else {}
        entry |= {"command": self.command, "args": [*self.prefix, *self.arguments]}
        return entry | ({"env": dict(self.variables)} if self.variables else {})

    def matches(self, value: Any) -> bool:
        """Whether an entry starts this installation of Dittybag."""
        start = [*self.prefix, "serve"]
        return _command(value) == self.command and _arguments(value)[: len(start)] == start


class ConfigTarget(Struct, frozen=True):
    """The entry of a client's configuration file that is written or removed. It may not exist."""

    client: McpClient
    scope: ConfigScope
    #: With symbolic links resolved.
    file: Path
    name: str
    #: Why the file cannot be edited, whatever it contains.
    problem: str = ""

    @staticmethod
    def resolve(
        client: McpClient, scope: ConfigScope, machine: LocalMachine, name: str
    ) -> ConfigTarget | None:
        """Return `None` if the client has no file of this scope."""
        file = client.file(scope, machine)
        if file is None:
            return None
        real = _resolve_links(file)
        problem = ""
        if not _is_encodable(str(real)):
            problem = "the path is not UTF-8 text"
        elif scope == "project" and not real.is_relative_to(_resolve_links(machine.current_folder)):
            # A repository can contain links. Those of the user's own files are the user's.
            problem = f"a symbolic link leads out of the project, from {file}"
        return ConfigTarget(client, scope, real, name, problem)

    def read(self) -> ConfigFileContent:
        """Read the file. Raises `ClientFileError`."""
        if self.problem:
            raise ClientFileRefused(ascii(str(self.file)), self.problem)
        return config_files.read(self.file)


class ConnectResult(Struct, frozen=True, kw_only=True):
    """The result of connecting or disconnecting a client, or of a dry run."""

    state: ConnectState
    #: The copy of the file from before the first entry, if it was made now.
    backup: str | None = None
    diff: str = ""


class ConnectionStatus(Struct, frozen=True, kw_only=True):
    """Whether a client is connected to Dittybag."""

    #: `broken`: the program of the only entries that start Dittybag does not exist.
    state: Literal["connected", "broken", "other", "absent", "unreadable"]
    #: The entries that start this installation of Dittybag.
    names: tuple[str, ...] = ()
    problem: str = ""
    #: The entries whose program does not exist, with the reason.
    broken: Mapping[str, str] = {}


class _Plan(Struct, frozen=True):
    """What a file will contain; without `data`, the file is deleted."""

    state: ConnectState
    data: bytes | None


def connect(target: ConfigTarget, launch: Launch, home: str, *, dry_run: bool = False) -> ConnectResult:
    """Add Dittybag to a client's configuration file. Raises `ClientFileError`."""
    entry = launch.entry(target.client)
    _check_values(target, entry)
    return _change(target, home, lambda before: _plan_connect(target, before, entry), dry_run=dry_run)


def disconnect(target: ConfigTarget, home: str, *, dry_run: bool = False) -> ConnectResult:
    """Remove the entry of this name, and nothing else, from a client's file. Raises `ClientFileError`.

    If nothing but the entry has changed since it was added, the file becomes what it was before.
    """
    copy = FileCopy(home, target.file)
    return _change(target, home, lambda before: _plan_removal(target, before, copy), dry_run=dry_run)


def connection_status(target: ConfigTarget, launch: Launch) -> ConnectionStatus:
    """Whether a client's file has an entry that starts Dittybag, under any name, and whose program exists."""
    try:
        entries = target.client.format.entries(target.read().text)
    except (ClientFileError, MalformedConfig) as error:
        problem = error.problem if isinstance(error, ClientFileError) else str(error)
        return ConnectionStatus(state="unreadable", problem=problem)
    problems = {name: entry_problem(value) for name, value in entries.items()}
    broken = {name: problem for name, problem in problems.items() if problem is not None}
    names = tuple(name for name, value in entries.items() if launch.matches(value) and name not in broken)
    if names:
        return ConnectionStatus(state="connected", names=names, broken=broken)
    if broken:
        return ConnectionStatus(state="broken", problem=next(iter(broken.values())), broken=broken)
    return ConnectionStatus(state="other" if target.name in entries else "absent")


def is_installed(client: McpClient, machine: LocalMachine, home: str) -> bool:
    """Whether the client was found, apart from what Dittybag has created."""
    file = client.file("user", machine)
    assert file is not None
    return client.is_installed(machine, FileCopy(home, _resolve_links(file)).created())


def entry_problem(value: Any) -> str | None:
    """Return why an entry of Dittybag cannot work: its program does not exist. `None` for other entries."""
    # For a path, `which` checks that it can be executed.
    if not _starts_dittybag(value) or shutil.which(os.path.expanduser(_command(value))):  # noqa: PTH111
        return None
    return f"the program {_command(value)} does not exist"


def _change(
    target: ConfigTarget, home: str, plan: Callable[[ConfigFileContent], _Plan], *, dry_run: bool
) -> ConnectResult:
    copy = FileCopy(home, target.file)
    with nullcontext() if dry_run else copy.lock():
        for _ in range(_ATTEMPTS):
            before = target.read()
            try:
                planned = plan(before)
                if not dry_run:
                    return _write(target, before, planned, copy)
            except MalformedConfig as error:
                raise ClientFileRefused(str(target.file), str(error)) from None
            except ConfigFileChanged:
                continue
            after = (planned.data or b"").decode().removeprefix(config_files.BOM)
            return ConnectResult(state=planned.state, diff=unified_diff(before.text, after, str(target.file)))
    raise ClientFileBusy(str(target.file), "another program keeps changing it")


def _write(target: ConfigTarget, before: ConfigFileContent, planned: _Plan, copy: FileCopy) -> ConnectResult:
    """Carry out a plan: first write the copy, then the file. Delete a copy that is not needed."""
    is_first = planned.state == "connected" and not _has_own(target, before)
    if is_first:
        copy.save(before.data)
    try:
        if planned.data is None and before.data is not None:
            config_files.remove(target.file, before, copy.created()[1:])
        elif planned.data is not None and planned.data != before.data:
            config_files.replace(target.file, planned.data, before, is_private=target.scope == "user")
    except (ClientFileError, ConfigFileChanged):
        _delete_unused(target, copy)
        raise
    if planned.state in ("removed", "absent"):
        _delete_unused(target, copy)
    backup = str(copy.path) if is_first and before.data is not None else None
    return ConnectResult(state=planned.state, backup=backup)


def _delete_unused(target: ConfigTarget, copy: FileCopy) -> None:
    if not _has_own(target, target.read()):
        copy.delete()


def _plan_connect(target: ConfigTarget, before: ConfigFileContent, entry: dict[str, Any]) -> _Plan:
    config_format, name = target.client.format, target.name
    entries = config_format.entries(before.text)
    found = entries.get(name)
    if name in entries and not _starts_dittybag(found):
        raise ClientEntryForeign(str(target.file), f"the entry '{name}' starts another program")
    value = _merge_entry(found, entry)
    if value == found:
        return _Plan("unchanged", before.data)
    after = config_format.write(before.text, name, value)
    is_only_change = config_format.rest(after, name) == config_format.rest(before.text, name)
    if not is_only_change or config_format.entries(after).get(name) != value:
        raise MalformedConfig("the entry cannot be added safely")
    return _Plan("updated" if name in entries else "connected", before.encode(after))


def _plan_removal(target: ConfigTarget, before: ConfigFileContent, copy: FileCopy) -> _Plan:
    config_format, name = target.client.format, target.name
    entries = config_format.entries(before.text)
    if name not in entries:
        return _Plan("absent", before.data)
    if not _starts_dittybag(entries[name]):
        raise ClientEntryForeign(str(target.file), f"the entry '{name}' starts another program")
    after = config_format.remove(before.text, name)
    is_only_change = config_format.rest(after, name) == config_format.rest(before.text, name)
    if not is_only_change or name in config_format.entries(after):
        raise MalformedConfig(f"'{name}' cannot be removed safely")
    earlier = copy.read()
    if earlier is not None and earlier.has_bom == before.has_bom:
        # With the same entry, the copy would have become this file.
        connected = config_format.write(earlier.text, name, entries[name])
        if config_format.remove(connected, name) == after:
            return _Plan("removed", earlier.data)
    return _Plan("removed", before.encode(after))


def _has_own(target: ConfigTarget, content: ConfigFileContent) -> bool:
    """Whether an entry of a file starts Dittybag."""
    return any(map(_starts_dittybag, target.client.format.entries(content.text).values()))


def _merge_entry(value: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The new entry, with the keys and variables that the user added to an entry of Dittybag."""
    if value is None:
        return dict(entry)
    variables = {name: text for name, text in _variables(value).items() if name != _HOME}
    variables |= _variables(entry)
    others = {key: part for key, part in value.items() if key not in _OWN_KEYS}
    return {**entry, **({"env": variables} if variables else {}), **others}


def _starts_dittybag(value: Any) -> bool:
    """Whether an entry starts any installation of Dittybag."""
    arguments = _arguments(value)
    if "serve" not in arguments:
        return False
    before = arguments[: arguments.index("serve")]
    program = _command(value).replace("\\", "/").rpartition("/")[2]
    return program.removesuffix(".exe") == "dittybag" or "dittybag" in before


def _command(value: Any) -> str:
    command = value.get("command") if isinstance(value, dict) else None
    return command if isinstance(command, str) else ""


def _arguments(value: Any) -> list[str]:
    arguments = value.get("args") if isinstance(value, dict) else None
    return [str(part) for part in arguments] if isinstance(arguments, list) else []


def _variables(value: Mapping[str, Any]) -> dict[str, Any]:
    variables = value.get("env")
    return dict(variables) if isinstance(variables, dict) else {}


def _check_values(target: ConfigTarget, entry: Mapping[str, Any]) -> None:
    """Raise `ClientFileRefused` for values that the file cannot hold or the client would expand."""
    texts = [entry["command"], *entry["args"], *_variables(entry).values()]
    for text in texts:
        if not _is_encodable(text):
            raise ClientFileRefused(str(target.file), f"{text!a} is not UTF-8 text")
        if target.client.would_expand(text):
            title = target.client.title
            raise ClientFileRefused(str(target.file), f"{title} would expand a variable in '{text}'")


def _is_encodable(text: str) -> bool:
    """Whether a text is valid UTF-8. A file name may not be."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _resolve_links(file: Path) -> Path:
    """Resolve symbolic links. A loop is left as it is: the system refuses to open it."""
    try:
        return file.resolve()
    except (OSError, RuntimeError):
        return file.absolute()
