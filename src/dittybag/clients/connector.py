"""Connect a client to Dittybag, disconnect it, and report whether it is connected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from dittybag.clients import config_files
from dittybag.clients.client_errors import ClientFileError, ClientFileRefused, MalformedConfig
from dittybag.clients.edit_records import EditRecord, EditRecords
from dittybag.clients.entry_edits import (
    Entry,
    EntryChange,
    PlannedChange,
    change_file,
    plan_removal,
    plan_write,
)
from dittybag.clients.known_clients import ConfigScope, LocalMachine, McpClient
from dittybag.clients.reversible_edits import are_in_place, shift_edits

_HOME: Final = "DITTYBAG_HOME"
#: The keys that Dittybag writes; the user may have added others.
_OWN_KEYS: Final = ("type", "command", "args", "env")

#: Returns why an entry of Dittybag cannot work, or `None`.
EntryCheck = Callable[[Any], str | None]

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

    @staticmethod
    def resolve(
        client: McpClient, scope: ConfigScope, machine: LocalMachine, name: str
    ) -> ConfigTarget | None:
        """Return `None` if the client has no file of this scope. Raises `ClientFileRefused`."""
        file = client.file(scope, machine)
        if file is None:
            return None
        real = resolve_links(file)
        if not is_encodable(str(real)):
            raise ClientFileRefused(ascii(str(real)), "the path is not UTF-8 text")
        return ConfigTarget(client, scope, real, name)


class ConnectResult(Struct, frozen=True, kw_only=True):
    """The result of connecting or disconnecting a client, or of a dry run."""

    state: ConnectState
    backup: str | None = None
    #: What the file contains, or would contain.
    text: str = ""
    diff: str = ""
    #: Whether an existing entry was replaced, or was restored by the removal.
    has_previous: bool = False


class ConnectionStatus(Struct, frozen=True, kw_only=True):
    """Whether a client is connected to Dittybag."""

    #: `broken`: the only entries that start Dittybag do not work.
    state: Literal["connected", "broken", "other", "absent", "unreadable"]
    #: The entries that start this installation of Dittybag and work.
    names: tuple[str, ...] = ()
    problem: str = ""
    #: The entries that start any installation of Dittybag and do not work, with the reason.
    broken: Mapping[str, str] = {}
    #: The entries that work, but that `connect` would write differently, with the reason.
    outdated: Mapping[str, str] = {}


def parse_launch(value: Any) -> Launch | None:
    """Return how an entry starts Dittybag, or `None` if it starts another program."""
    if not _starts_dittybag(value):
        return None
    arguments = _arguments(value)
    at = arguments.index("serve")
    return Launch(_command(value), tuple(arguments[:at]), tuple(arguments[at:]), _variables(value))


def assume_working(value: Any) -> str | None:
    """The `EntryCheck` that finds no problem."""
    return None


def connect(
    target: ConfigTarget,
    launch: Launch,
    home: str,
    *,
    check: EntryCheck = assume_working,
    dry_run: bool = False,
) -> ConnectResult:
    """Add Dittybag to a client's configuration file. Raises `ClientFileError`."""
    entry = launch.entry(target.client)
    _check_values(target, entry)
    return _change(
        target,
        home,
        lambda text, records: _plan_connect(target, text, entry, records, check),
        dry_run=dry_run,
    )


def disconnect(
    target: ConfigTarget,
    home: str,
    *,
    check: EntryCheck = assume_working,
    dry_run: bool = False,
    text: str | None = None,
) -> ConnectResult:
    """Remove Dittybag from a client's file and restore its previous state. Raises `ClientFileError`.

    A previous entry of Dittybag that does not work is not restored. See `change_file` for `text`.
    """
    return _change(
        target,
        home,
        lambda text, records: plan_removal(_entry(target, check), text, records),
        dry_run=dry_run,
        text=text,
    )


def connection_status(
    target: ConfigTarget, launch: Launch, check: EntryCheck = assume_working
) -> ConnectionStatus:
    """Whether a client's file has an entry that starts Dittybag, under any name, and works."""
    try:
        entries = target.client.format.entries(config_files.read(target.file).text)
    except (ClientFileError, MalformedConfig) as error:
        problem = error.problem if isinstance(error, ClientFileError) else str(error)
        return ConnectionStatus(state="unreadable", problem=problem)
    broken = {name: reason for name, value in entries.items() if (reason := check(value)) is not None}
    names = tuple(name for name, value in entries.items() if launch.matches(value) and name not in broken)
    if names:
        return ConnectionStatus(state="connected", names=names, broken=broken)
    if broken:
        return ConnectionStatus(state="broken", problem=next(iter(broken.values())), broken=broken)
    return ConnectionStatus(state="other" if target.name in entries else "absent")


def written_entries(target: ConfigTarget, home: str) -> dict[str, Any]:
    """The entries of Dittybag that are as `connect` has written them, by name."""
    try:
        text = config_files.read(target.file).text
        entries = target.client.format.entries(text)
    except (ClientFileError, MalformedConfig):
        return {}
    records = EditRecords(home)
    found: dict[str, Any] = {}
    for name, value in entries.items():
        if not _starts_dittybag(value):
            continue
        entry = target.client.format.find(text, name)
        written = records.read(target.file, name)
        if entry is not None and any(
            are_in_place(text, shift_edits(record.applied, entry.at)) for record in written
        ):
            found[name] = value
    return found


def _change(
    target: ConfigTarget,
    home: str,
    plan: Callable[[str, tuple[EditRecord, ...]], PlannedChange],
    *,
    dry_run: bool,
    text: str | None = None,
) -> ConnectResult:
    result = change_file(
        target.file,
        (EntryChange(target.name, plan),),
        home,
        label=f"{target.client.name}-{target.scope}",
        is_private=target.scope == "user",
        dry_run=dry_run,
        text=text,
    )
    (state,) = result.states
    return ConnectResult(
        state="connected" if state == "added" else state,
        backup=result.backup,
        text=result.text,
        diff=result.diff,
        has_previous=result.has_previous,
    )


def _entry(target: ConfigTarget, check: EntryCheck) -> Entry:
    return Entry(
        target.file,
        target.name,
        target.client.format,
        record=target.name,
        is_own=_starts_dittybag,
        is_broken=lambda value: check(value) is not None,
        foreign=f"the entry '{target.name}' starts another program",
    )


def _plan_connect(
    target: ConfigTarget,
    text: str,
    entry: dict[str, Any],
    records: tuple[EditRecord, ...],
    check: EntryCheck,
) -> PlannedChange:
    found = target.client.format.find(text, target.name)
    is_broken = found is not None and check(found.value) is not None
    value = entry if found is None else _merge_entry(found.value, entry, is_broken=is_broken)
    if found is not None and (value == found.value or (not is_broken and _is_up_to_date(found.value, entry))):
        return PlannedChange(state="unchanged", text=text)
    return plan_write(_entry(target, check), text, value, records)


def _is_up_to_date(value: Any, entry: Mapping[str, Any]) -> bool:
    """Whether an entry already has the same command, arguments and data folder."""
    return (
        isinstance(value, dict)
        and all(value.get(key) == entry[key] for key in ("command", "args"))
        and value.get("type", "stdio") == "stdio"
        and _variables(value).get(_HOME) == _variables(entry).get(_HOME)
    )


def _merge_entry(value: Any, entry: Mapping[str, Any], *, is_broken: bool) -> dict[str, Any]:
    """The new entry, with the keys and variables that the user added to an entry of Dittybag.

    Variables of Dittybag in a broken entry are not kept: they may be what is wrong with it.
    """
    if not _starts_dittybag(value):
        return dict(entry)
    dropped = "DITTYBAG_" if is_broken else _HOME
    variables = {name: text for name, text in _variables(value).items() if not name.startswith(dropped)}
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
        if not is_encodable(text):
            raise ClientFileRefused(str(target.file), f"{text!a} is not UTF-8 text")
        if target.client.would_expand(text):
            title = target.client.title
            raise ClientFileRefused(str(target.file), f"{title} would expand a variable in '{text}'")


def is_encodable(text: str) -> bool:
    """Whether a text is valid UTF-8. A file name may not be."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def resolve_links(file: Path) -> Path:
    """Resolve symbolic links. A loop is left as it is: the system refuses to open it."""
    try:
        return file.resolve()
    except (OSError, RuntimeError):
        return file.absolute()
