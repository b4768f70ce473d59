"""Whether the files of an installed library differ from those that were installed."""

from __future__ import annotations

from dittybag.library.install_records import is_edited, library_folder, read_record


def has_local_edits(home: str, name: str) -> bool:
    """Whether an installed library was edited; not if it is linked or was added by hand."""
    record = read_record(home, name)
    return record is not None and record.kind != "link" and is_edited(library_folder(home, name), record)
