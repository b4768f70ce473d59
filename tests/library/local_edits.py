"""Which files of an installed library differ from its source."""

from __future__ import annotations

from dittybag.library.install_records import edited_files, library_folder, read_record


def local_edits(home: str, name: str) -> list[str]:
    """The files of an installed library that differ from its source; none if it is linked."""
    record = read_record(home, name)
    if record is None or record.kind == "link":
        return []
    return edited_files(library_folder(home, name), record)
