"""Write and remove entries of a configuration file: plan the change, check it, and carry it out."""

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
    ClientFileRefused,
    MalformedConfig,
)
from dittybag.clients.config_files import ConfigFileChanged, ConfigFileContent
from dittybag.clients.config_format import ConfigFormat, EntryEdits, FoundEntry
from dittybag.clients.edit_records import EditRecord, EditRecords
from dittybag.clients.reversible_edits import (
    TextEdit,
    apply_edits,
    are_in_place,
    combine_edits,
    revert_edits,
    shift_edits,
)
from dittybag.text_diff import unified_diff

_ATTEMPTS: Final = 5

EntryState = Literal["added", "unchanged", "updated", "removed", "absent"]


class Entry(Struct, frozen=True):
    """An entry of a configuration file, which may not exist, and what Dittybag may do to it."""

    #: With symbolic links resolved.
    file: Path
    name: str
    format: ConfigFormat
    #: The name of its records.
    record: str
    #: Whether a value was written by Dittybag.
    is_own: Callable[[Any], bool]
    #: Whether a value does not work; such an entry of Dittybag is not restored.
    is_broken: Callable[[Any], bool]
    #: What `ClientEntryForeign` says about an entry that is not Dittybag's.
    foreign: str


class PlannedChange(Struct, frozen=True, kw_only=True):
    """A change to an entry that has been checked but not written."""

    state: EntryState
    text: str
    #: The new record of the entry; `None` removes it.
    record: EditRecord | None = None
    has_previous: bool = False
    #: Delete the file and these folders.
    is_deletion: bool = False
    folders: tuple[str, ...] = ()


class EntryChange(Struct, frozen=True):
    """How to change one entry: the plan for a text and the records of the entry."""

    record: str
    plan: Callable[[str, tuple[EditRecord, ...]], PlannedChange]


class FileChange(Struct, frozen=True, kw_only=True):
    """The result of changes to a file, or of a dry run."""

    #: In the order of the changes.
    states: tuple[EntryState, ...]
    backup: str | None = None
    #: What the file contains, or would contain.
    text: str
    diff: str = ""
    #: Whether an existing entry was replaced, or was restored by the removal.
    has_previous: bool = False


def change_file(
    file: Path,
    changes: Sequence[EntryChange],
    home: str,
    *,
    label: str,
    is_private: bool,
    dry_run: bool,
    text: str | None = None,
) -> FileChange:
    """Carry out changes to a file, all in one write. Raises `ClientFileError`.

    `label`: a part of the name of the backup. `text`: for a dry run, instead of the text in the file.
    """
    edit_records = EditRecords(home)
    if dry_run:
        before = config_files.read(file) if text is None else ConfigFileContent(text.encode(), text)
        planned = _make_plans(file, changes, before, edit_records)
        return FileChange(
            states=tuple(plan.state for plan in planned),
            text=planned[-1].text,
            diff=unified_diff(before.text, planned[-1].text, str(file)),
            has_previous=any(plan.has_previous for plan in planned),
        )
    with edit_records.lock(file):
        for _ in range(_ATTEMPTS):
            before = config_files.read(file)
            planned = _make_plans(file, changes, before, edit_records)
            try:
                return _write_plans(
                    file, changes, planned, before, edit_records, label=label, is_private=is_private
                )
            except ConfigFileChanged:
                continue
    raise ClientFileBusy(str(file), "another program keeps changing it")


def plan_write(
    entry: Entry, text: str, value: Mapping[str, Any], records: tuple[EditRecord, ...]
) -> PlannedChange:
    """Plan to add an entry, or to replace its value. Raises `MalformedConfig`."""
    config_format, name = entry.format, entry.name
    found = config_format.find(text, name)
    write = config_format.write_edits(text, name, value)
    after, applied = apply_edits(text, write.edits)
    now = config_format.find(after, name)
    if now is None or not config_format.is_only_change(text, after, name, value):
        raise MalformedConfig("the entry cannot be added safely")
    if found is not None and records and entry.is_own(found.value):
        record = _extend_record(records, text, found, write, now)
    else:
        record = EditRecord(
            file=str(entry.file),
            name=entry.record,
            applied=shift_edits(applied, -now.at),
            previous=None if found is None or entry.is_broken(found.value) else found.text,
            created=write.created,
        )
    return PlannedChange(
        state="added" if found is None else "updated",
        text=after,
        record=record,
        has_previous=record.previous is not None,
    )


def plan_removal(entry: Entry, text: str, records: tuple[EditRecord, ...]) -> PlannedChange:
    """Plan to remove an entry, or to restore the one it replaced.

    Raises `MalformedConfig` and `ClientEntryForeign`.
    """
    config_format, name = entry.format, entry.name
    found = config_format.find(text, name)
    if found is None:
        return PlannedChange(state="absent", text=text)
    for after, record in _removal_candidates(entry, text, found, records):
        try:
            is_correct = config_format.is_unchanged_elsewhere(text, after, name)
            restored = config_format.find(after, name)
        except MalformedConfig:
            continue
        if restored is not None and entry.is_broken(restored.value):
            continue
        previous = None if record is None else record.previous
        if is_correct and (restored is not None) == (previous is not None):
            is_deletion = record is not None and record.with_file and not after.strip()
            return PlannedChange(
                state="removed",
                text=after,
                has_previous=previous is not None,
                is_deletion=is_deletion,
                folders=record.with_folders if record is not None and is_deletion else (),
            )
    raise MalformedConfig(f"'{name}' cannot be removed safely")


def _make_plans(
    file: Path, changes: Sequence[EntryChange], before: ConfigFileContent, edit_records: EditRecords
) -> list[PlannedChange]:
    """Plan each change on the text that the one before it leaves."""
    planned: list[PlannedChange] = []
    text, is_missing = before.text, before.data is None
    folders: tuple[str, ...] = ()
    for change in changes:
        try:
            plan = change.plan(text, edit_records.read(file, change.record))
        except MalformedConfig as error:
            raise ClientFileRefused(str(file), str(error)) from None
        if plan.is_deletion:
            is_missing, folders = True, plan.folders
        elif plan.record is not None and is_missing:
            record = msgspec.structs.replace(plan.record, with_file=True, with_folders=folders)
            plan = msgspec.structs.replace(plan, record=record)
            is_missing = False
        planned.append(plan)
        text = plan.text
    return planned


def _write_plans(
    file: Path,
    changes: Sequence[EntryChange],
    planned: Sequence[PlannedChange],
    before: ConfigFileContent,
    edit_records: EditRecords,
    *,
    label: str,
    is_private: bool,
) -> FileChange:
    """Carry out planned changes: first write the backup and the records, then the file."""
    states = tuple(plan.state for plan in planned)
    steps = list(zip(changes, planned, strict=True))
    backup = None
    if any(state in ("added", "updated", "removed") for state in states):
        if before.data is not None:
            backup = str(edit_records.back_up(file, before.data, label))
        if any(plan.is_deletion for plan in planned) and not planned[-1].text.strip():
            folders = [folder for plan in planned for folder in plan.folders]
            config_files.remove(file, before, folders)
        else:
            _write_file(file, steps, before, edit_records, is_private=is_private)
    last = {change.record: plan.state for change, plan in steps}
    for name, state in last.items():
        if state in ("removed", "absent"):
            edit_records.delete(file, name)
    return FileChange(
        states=states,
        backup=backup,
        text=planned[-1].text,
        has_previous=any(plan.has_previous for plan in planned),
    )


def _write_file(
    file: Path,
    steps: Sequence[tuple[EntryChange, PlannedChange]],
    before: ConfigFileContent,
    edit_records: EditRecords,
    *,
    is_private: bool,
) -> None:
    records = [plan.record for _, plan in steps if plan.record is not None]
    for record in records:
        edit_records.save((record, *edit_records.read(file, record.name)[:1]))
    created = config_files.replace(file, before.encode(steps[-1][1].text), before, is_private=is_private)
    for record in records:
        folders = record.with_folders or (tuple(created) if record.with_file else ())
        edit_records.save((msgspec.structs.replace(record, with_folders=folders),))


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


def _removal_candidates(
    entry: Entry, text: str, found: FoundEntry, records: tuple[EditRecord, ...]
) -> Iterator[tuple[str, EditRecord | None]]:
    """Texts without the entry, or with the entry it replaced; the most exact first."""
    config_format, name = entry.format, entry.name
    for record in records:
        applied = shift_edits(record.applied, found.at)
        if are_in_place(text, applied):
            yield revert_edits(text, applied), record
    if not entry.is_own(found.value):
        raise ClientEntryForeign(str(entry.file), entry.foreign)
    last = records[0] if records else None
    alternatives: Sequence[tuple[TextEdit, ...]]
    if last is None:
        alternatives = config_format.removal_edits(text, name, created=0)
    elif last.previous is None:
        alternatives = config_format.removal_edits(text, name, created=last.created)
    else:
        alternatives = (config_format.restore_edits(text, name, last.previous),)
    for edits in alternatives:
        yield apply_edits(text, edits)[0], last
    if last is not None and last.previous is not None:
        # The entry that it replaced may not be worth restoring.
        for edits in config_format.removal_edits(text, name, created=0):
            yield apply_edits(text, edits)[0], None
