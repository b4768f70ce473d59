"""Connect a client to Dittybag, disconnect it, and report whether it is connected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from dittybag.clients import config_files
from dittybag.clients.client_errors import (
    ClientEntryForeign,
    ClientFileBusy,
    ClientFileError,
    ClientFileRefused,
    MalformedConfig,
)
from dittybag.clients.config_files import ConfigFileChanged, ConfigFileContent
from dittybag.clients.config_format import EntryEdits, FoundEntry
from dittybag.clients.edit_records import EditRecord, EditRecords
from dittybag.clients.known_clients import ConfigScope, LocalMachine, McpClient
from dittybag.clients.reversible_edits import (
    TextEdit,
    apply_edits,
    are_in_place,
    combine_edits,
    revert_edits,
    shift_edits,
)
from dittybag.text_diff import unified_diff

_HOME: Final = "DITTYBAG_HOME"
#: The keys that Dittybag writes; the user may have added others.
_OWN_KEYS: Final = ("type", "command", "args", "env")
_ATTEMPTS: Final = 5

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
        real = _resolve_links(file)
        if not _is_encodable(str(real)):
            raise ClientFileRefused(ascii(str(real)), "the path is not UTF-8 text")
        return ConfigTarget(client, scope, real, name)


class ConnectResult(Struct, frozen=True, kw_only=True):
    """The result of connecting or disconnecting a client, or of a dry run."""

    state: ConnectState
    backup: str | None = None
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


class _PlannedChange(Struct, frozen=True, kw_only=True):
    """A change to a file that has been checked but not written."""

    state: ConnectState
    text: str = ""
    #: The new record of the entry; `None` removes it.
    record: EditRecord | None = None
    has_previous: bool = False
    #: Delete the file and these folders.
    is_deletion: bool = False
    folders: tuple[str, ...] = ()


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
    return _carry_out(
        target,
        home,
        lambda text, records: _plan_connect(target, text, entry, records, check),
        dry_run=dry_run,
    )


def disconnect(
    target: ConfigTarget, home: str, *, check: EntryCheck = assume_working, dry_run: bool = False
) -> ConnectResult:
    """Remove Dittybag from a client's file and restore its previous state. Raises `ClientFileError`.

    A previous entry of Dittybag that does not work is not restored.
    """
    return _carry_out(
        target, home, lambda text, records: _plan_removal(target, text, records, check), dry_run=dry_run
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


def _carry_out(
    target: ConfigTarget,
    home: str,
    plan: Callable[[str, tuple[EditRecord, ...]], _PlannedChange],
    *,
    dry_run: bool,
) -> ConnectResult:
    edit_records = EditRecords(home)
    if dry_run:
        before = config_files.read(target.file)
        planned = _make_plan(target, plan, before, edit_records)
        after = before.text if planned.state in ("unchanged", "absent") else planned.text
        return ConnectResult(
            state=planned.state,
            diff=unified_diff(before.text, after, str(target.file)),
            has_previous=planned.has_previous,
        )
    with edit_records.lock(target.file):
        for _ in range(_ATTEMPTS):
            before = config_files.read(target.file)
            planned = _make_plan(target, plan, before, edit_records)
            try:
                return _write_plan(target, edit_records, before, planned)
            except ConfigFileChanged:
                continue
    raise ClientFileBusy(str(target.file), "another program keeps changing it")


def _make_plan(
    target: ConfigTarget,
    plan: Callable[[str, tuple[EditRecord, ...]], _PlannedChange],
    before: ConfigFileContent,
    edit_records: EditRecords,
) -> _PlannedChange:
    records = edit_records.read(target.file, target.name)
    try:
        planned = plan(before.text, records)
    except MalformedConfig as error:
        raise ClientFileRefused(str(target.file), str(error)) from None
    if planned.record is not None and before.data is None:
        return msgspec.structs.replace(
            planned, record=msgspec.structs.replace(planned.record, with_file=True)
        )
    return planned


def _write_plan(
    target: ConfigTarget, edit_records: EditRecords, before: ConfigFileContent, planned: _PlannedChange
) -> ConnectResult:
    """Carry out a planned change: first write the backup and the record, then the file."""
    if planned.state == "unchanged":
        return ConnectResult(state="unchanged")
    if planned.state == "absent":
        edit_records.delete(target.file, target.name)
        return ConnectResult(state="absent")
    backup = None
    if before.data is not None:
        label = f"{target.client.name}-{target.scope}"
        backup = str(edit_records.back_up(target.file, before.data, label))
    if planned.is_deletion:
        config_files.remove(target.file, before, list(planned.folders))
    else:
        record = planned.record
        if record is not None:
            edit_records.save((record, *edit_records.read(target.file, target.name)[:1]))
        data = before.encode(planned.text)
        folders = config_files.replace(target.file, data, before, is_private=target.scope == "user")
        if record is not None:
            edit_records.save(
                (msgspec.structs.replace(record, with_folders=record.with_folders or tuple(folders)),)
            )
    if planned.record is None:
        edit_records.delete(target.file, target.name)
    return ConnectResult(state=planned.state, backup=backup, has_previous=planned.has_previous)


def _plan_connect(
    target: ConfigTarget,
    text: str,
    entry: dict[str, Any],
    records: tuple[EditRecord, ...],
    check: EntryCheck,
) -> _PlannedChange:
    config_format, name = target.client.format, target.name
    found = config_format.find(text, name)
    is_broken = found is not None and check(found.value) is not None
    value = entry if found is None else _merge_entry(found.value, entry, is_broken=is_broken)
    if found is not None and (value == found.value or (not is_broken and _is_up_to_date(found.value, entry))):
        return _PlannedChange(state="unchanged")
    write = config_format.write_edits(text, name, value)
    after, applied = apply_edits(text, write.edits)
    now = config_format.find(after, name)
    if now is None or not config_format.is_only_change(text, after, name, value):
        raise MalformedConfig("the entry cannot be added safely")
    if found is not None and records and _starts_dittybag(found.value):
        record = _extend_record(records, text, found, write, now)
    else:
        record = EditRecord(
            file=str(target.file),
            name=name,
            applied=shift_edits(applied, -now.at),
            previous=None if found is None or is_broken else found.text,
            with_container=write.with_container,
            with_root=write.with_root,
        )
    state: ConnectState = "connected" if found is None else "updated"
    return _PlannedChange(state=state, text=after, record=record, has_previous=record.previous is not None)


def _extend_record(
    records: tuple[EditRecord, ...], text: str, found: FoundEntry, write: EntryEdits, now: FoundEntry
) -> EditRecord:
    """Extend the record of an entry with an update of it, so that one removal reverts both."""
    for record in records:
        applied = shift_edits(record.applied, found.at)
        if are_in_place(text, applied):
            both = combine_edits(applied, text, write.edits)
            return msgspec.structs.replace(record, applied=shift_edits(both, -now.at))
    return msgspec.structs.replace(records[0], applied=())


def _plan_removal(
    target: ConfigTarget, text: str, records: tuple[EditRecord, ...], check: EntryCheck
) -> _PlannedChange:
    config_format, name = target.client.format, target.name
    found = config_format.find(text, name)
    if found is None:
        return _PlannedChange(state="absent")
    for after, record in _removal_candidates(target, text, found, records):
        try:
            is_correct = config_format.is_unchanged_elsewhere(text, after, name)
            restored = config_format.find(after, name)
        except MalformedConfig:
            continue
        is_present = restored is not None
        if restored is not None and check(restored.value) is not None:
            continue
        previous = None if record is None else record.previous
        if is_correct and is_present == (previous is not None):
            is_deletion = record is not None and record.with_file and not after.strip()
            return _PlannedChange(
                state="removed",
                text=after,
                has_previous=previous is not None,
                is_deletion=is_deletion,
                folders=record.with_folders if record is not None and is_deletion else (),
            )
    raise MalformedConfig(f"'{name}' cannot be removed safely")


def _removal_candidates(
    target: ConfigTarget, text: str, found: FoundEntry, records: tuple[EditRecord, ...]
) -> Iterator[tuple[str, EditRecord | None]]:
    """Texts without the entry, or with the entry it replaced; the most exact first."""
    config_format, name = target.client.format, target.name
    for record in records:
        applied = shift_edits(record.applied, found.at)
        if are_in_place(text, applied):
            yield revert_edits(text, applied), record
    if not _starts_dittybag(found.value):
        raise ClientEntryForeign(str(target.file), f"the entry '{name}' starts another program")
    last = records[0] if records else None
    alternatives: Sequence[tuple[TextEdit, ...]]
    if last is None:
        alternatives = config_format.removal_edits(text, name, container=False, root=False)
    elif last.previous is None:
        alternatives = config_format.removal_edits(
            text, name, container=last.with_container, root=last.with_root
        )
    else:
        alternatives = (config_format.restore_edits(text, name, last.previous),)
    for edits in alternatives:
        yield apply_edits(text, edits)[0], last
    if last is not None and last.previous is not None:
        # The entry that it replaced may not be worth restoring.
        for edits in config_format.removal_edits(text, name, container=False, root=False):
            yield apply_edits(text, edits)[0], None


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
