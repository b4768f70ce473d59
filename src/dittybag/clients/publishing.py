"""Write, update and remove published files. What a person has edited is never overwritten or removed.

Three versions decide: the one that was published, the stored one, and the one in the file. If only the stored
one has changed, the file is updated; if only the file has, it is kept; if both have, it is a conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dittybag.clients import config_files
from dittybag.clients.client_errors import ClientFileBusy, ClientFileRefused, MalformedConfig
from dittybag.clients.config_files import ConfigFileChanged, ConfigFileContent
from dittybag.clients.marked_sections import find_section, gap_before_end, remove_section
from dittybag.clients.native_text import is_unedited, published_digest, without_digest
from dittybag.clients.publishing_records import PublishingRecord, PublishingRecords, PublishingSource
from dittybag.text_diff import unified_diff

_ATTEMPTS: Final = 5

PublishState = Literal["created", "updated", "unchanged", "kept", "conflict", "removed", "absent"]


class PublishedFile(Struct, frozen=True):
    """A file to publish, or a section of one."""

    path: Path
    data: bytes
    section: str = ""


class FileOutcome(Struct, frozen=True):
    """What happened to a file."""

    file: str
    state: PublishState
    #: From what the file has to what is stored; empty if they are equal.
    diff: str = ""
    #: The section of the file that it is about; empty for the whole file.
    section: str = ""


def publish(
    target: str,
    item: str,
    root: Path,
    wanted: Sequence[PublishedFile],
    records: PublishingRecords,
    *,
    source: PublishingSource | None = None,
    dry_run: bool = False,
) -> list[FileOutcome]:
    """Write the files of a prompt or skill, and remove those that it no longer has.

    Raises `ClientFileError`.
    """
    with records.lock():
        outcomes = [_publish_file(target, item, file, records, source, dry_run=dry_run) for file in wanted]
        stale = _stale(records.of_item(target, item, root), wanted)
        return outcomes + [_remove(record, records, dry_run=dry_run) for record in stale]


def follow(
    target: str,
    item: str,
    wanted: Sequence[PublishedFile],
    records: PublishingRecords,
    source: PublishingSource,
    *,
    dry_run: bool = False,
) -> list[FileOutcome]:
    """Like `publish`, for files that were published before from `source`: one that was deleted stays so.

    The caller holds the lock of the records. Raises `ClientFileError`.
    """
    root = Path(source.root)
    # A linked folder may lead out of `root`.
    mine = [
        record
        for record in records.all()
        if (record.target, record.item, record.source) == (target, item, source)
    ]
    gone = [record for record in mine if not _exists(record)]
    if not root.is_dir() or len(gone) == len(mine):
        return [FileOutcome(record.file, "absent", section=record.section) for record in mine]
    absent = {(record.file, record.section) for record in gone}
    outcomes = []
    for file in wanted:
        path = str(_resolve(file.path))
        if (path, file.section) in absent:
            outcomes.append(FileOutcome(path, "absent", section=file.section))
        else:
            outcomes.append(_publish_file(target, item, file, records, source, dry_run=dry_run))
    return outcomes + [_remove(record, records, dry_run=dry_run) for record in _stale(mine, wanted)]


def _stale(found: Sequence[PublishingRecord], wanted: Sequence[PublishedFile]) -> list[PublishingRecord]:
    """Return the records of files that are no longer wanted."""
    known = {(str(_resolve(file.path)), file.section) for file in wanted}
    return [record for record in found if (record.file, record.section) not in known]


def _exists(record: PublishingRecord) -> bool:
    path = Path(record.file)
    return _current(path, ConfigFileContent(config_files.read_bytes(path)), record.section) is not None


def unpublish(
    target: str,
    item: str,
    root: Path,
    expected: Sequence[PublishedFile],
    records: PublishingRecords,
    *,
    dry_run: bool = False,
) -> list[FileOutcome]:
    """Remove the files of a prompt or skill, and the folders that were created for them.

    `expected`: where its files would be, without their content. Files that were published from another data
    folder are recognised by their headers. Raises `ClientFileError`.
    """
    with records.lock():
        found = records.of_item(target, item, root)
        known = {(record.file, record.section) for record in found}
        for file in expected:
            path = _resolve(file.path)
            if (str(path), file.section) not in known:
                # A linked folder may lead out of `root`.
                found.append(
                    records.read(path, file.section)
                    or PublishingRecord(
                        target=target, item=item, file=str(path), section=file.section, versions=()
                    )
                )
        return [_remove(record, records, dry_run=dry_run) for record in found]


def _resolve(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise ClientFileRefused(str(path), f"the path cannot be resolved ({error})") from error


def _publish_file(
    target: str,
    item: str,
    file: PublishedFile,
    records: PublishingRecords,
    source: PublishingSource | None,
    *,
    dry_run: bool,
) -> FileOutcome:
    path = _resolve(file.path)
    for _ in range(_ATTEMPTS):
        before = ConfigFileContent(config_files.read_bytes(path))
        record = records.read(path, file.section)
        theirs = _current(path, before, file.section)
        state = _decide(file.data, theirs, record)
        diff = "" if state == "unchanged" else _diff(theirs, file.data, path.name)
        if dry_run or state in ("kept", "conflict"):
            return FileOutcome(str(path), state, diff, file.section)
        if state == "unchanged" and record is not None and record.versions == (file.data,):
            if record.source != source:
                records.save(replace(record, target=target, item=item, source=source))
            return FileOutcome(str(path), state, section=file.section)
        kept = record or PublishingRecord(
            target=target,
            item=item,
            file=str(path),
            section=file.section,
            versions=(),
            with_file=before.data is None,
        )
        whole, gap = _new_content(before, theirs, file, kept.gap)
        kept = replace(kept, target=target, item=item, gap=gap, source=source)
        try:
            records.save(replace(kept, versions=(file.data, *kept.versions)[:2]))
            folders: list[str] = []
            if state != "unchanged":
                folders = config_files.replace(path, whole, before, is_private=False)
        except ConfigFileChanged:
            continue
        folders += [folder for folder in kept.with_folders if folder not in folders]
        records.save(replace(kept, versions=(file.data,), with_folders=tuple(folders)))
        return FileOutcome(str(path), state, diff, file.section)
    raise ClientFileBusy(str(path), "another program keeps changing the file")


def _decide(ours: bytes, theirs: bytes | None, record: PublishingRecord | None) -> PublishState:
    """Compare the published, the stored and the current version."""
    # Nothing is lost by writing a file that does not exist.
    if theirs is None:
        return "created"
    if theirs == ours:
        return "unchanged"
    versions = () if record is None else record.versions
    text, ours_text = _text(theirs), _text(ours)
    is_equal_text = (
        text is not None and ours_text is not None and without_digest(text) == without_digest(ours_text)
    )
    if theirs in versions or is_equal_text or (text is not None and _is_ours(text, ours_text)):
        return "updated"
    was_published = text is not None and ours_text is not None and _has_digest_of(text, ours_text)
    return "kept" if versions[:1] == (ours,) or was_published else "conflict"


def _is_ours(text: str, ours: str | None) -> bool:
    """Whether a text was published from the same prompt as ours, and is not edited."""
    return ours is not None and is_unedited(text) and _header(text) == _header(ours)


def _header(text: str) -> str:
    return next((line for line in without_digest(text).splitlines() if "Published by Dittybag" in line), "")


def _has_digest_of(text: str, ours: str) -> bool:
    digest = published_digest(text)
    return digest is not None and digest == published_digest(ours)


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _current(path: Path, before: ConfigFileContent, section: str) -> bytes | None:
    """Return the current version of a file or section; `None` if it does not exist."""
    if not section or before.data is None:
        return before.data
    text = _text(before.data)
    if text is None:
        raise ClientFileRefused(str(path), "not UTF-8 text")
    try:
        found = find_section(text, section)
    except MalformedConfig as error:
        raise ClientFileRefused(str(path), str(error)) from error
    return None if found is None else found.encode()


def _new_content(
    before: ConfigFileContent, theirs: bytes | None, file: PublishedFile, gap: str
) -> tuple[bytes, str]:
    """Return the new content of the whole file, and the gap before the section."""
    if not file.section:
        return file.data, ""
    data = before.data or b""
    if theirs is not None:
        return data.replace(theirs, file.data, 1), gap
    gap = gap_before_end(data.decode())
    return data + gap.encode() + file.data, gap


def _remove(record: PublishingRecord, records: PublishingRecords, *, dry_run: bool) -> FileOutcome:
    path = Path(record.file)
    for _ in range(_ATTEMPTS):
        before = ConfigFileContent(config_files.read_bytes(path))
        theirs = _current(path, before, record.section)
        state = _decide_removal(theirs, record)
        if state == "kept" or dry_run:
            after = theirs if state == "kept" else b""
            first = record.versions[0] if state == "kept" and record.versions else theirs
            return FileOutcome(record.file, state, _diff(first, after or b"", path.name), record.section)
        if state == "removed":
            try:
                _take_out(path, before, theirs, record)
            except ConfigFileChanged:
                continue
        records.delete(record)
        _hand_over(record, records)
        return FileOutcome(record.file, state, section=record.section)
    raise ClientFileBusy(record.file, "another program keeps changing the file")


def _decide_removal(theirs: bytes | None, record: PublishingRecord) -> PublishState:
    if theirs is None:
        return "absent"
    text = _text(theirs)
    if theirs in record.versions or (text is not None and is_unedited(text)):
        return "removed"
    was_published = bool(record.versions) or (text is not None and published_digest(text) is not None)
    return "kept" if was_published else "absent"


def _take_out(path: Path, before: ConfigFileContent, theirs: bytes | None, record: PublishingRecord) -> None:
    """Remove a file or section from the disk."""
    if theirs is None or before.data is None:
        return
    rest = b""
    if record.section:
        rest = remove_section(before.data.decode(), theirs.decode(), record.gap).encode()
    if rest or (record.section and not record.with_file):
        config_files.replace(path, rest, before, is_private=False)
    else:
        config_files.remove(path, before, list(record.with_folders))


def _hand_over(record: PublishingRecord, records: PublishingRecords) -> None:
    """Let another record remember what was created for this one and still exists, or remove the folders."""
    folders = list(record.with_folders)
    config_files.remove_folders(folders)
    left = [folder for folder in folders if Path(folder).is_dir()]
    if not left and not record.with_file:
        return
    for other in records.all():
        if record.with_file and other.file == record.file:
            records.save(replace(other, with_file=True, with_folders=_merge(other.with_folders, left)))
            return
        if any(Path(other.file).is_relative_to(folder) for folder in left):
            records.save(replace(other, with_folders=_merge(other.with_folders, left)))
            return


def _merge(folders: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Return folders without duplicates, innermost first."""
    return tuple(sorted({*folders, *others}, key=lambda folder: -len(Path(folder).parts)))


def _diff(old: bytes | None, new: bytes, name: str) -> str:
    return unified_diff((old or b"").decode(errors="replace"), new.decode(errors="replace"), name)
