"""Files and folders that are added as resources together."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from dittybag import files
from dittybag.cli.error_output import ExitStatus
from dittybag.cli.output import progress
from dittybag.cli.read_input import STREAM, label, read_bytes, refuse, usage_error
from dittybag.domain.display import format_count, format_size
from dittybag.domain.mime_types import guess_mime_type
from dittybag.domain.names import NAME_LENGTH
from dittybag.domain.resources import CONTENT_BYTES
from dittybag.services.resource_service import NewResource

_INVALID_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")
#: At most this many files are added at once, with this many bytes together.
MAX_FILES: Final = 1000
MAX_BYTES: Final = 64 * 1024 * 1024
#: At most this many entries of folders are looked at.
_MAX_ENTRIES: Final = 100_000


class ResourceFile(Struct, frozen=True):
    """A file, and the path below its folder that names the resource."""

    source: str
    path: str


def resource_name(path: str) -> str:
    """Return a path as a name, with invalid characters replaced."""
    return _INVALID_IN_NAMES.sub("-", path).strip("-")[:NAME_LENGTH] or "document"


def own_name(file: str) -> str:
    """Return the name of a resource for a file."""
    return resource_name(os.path.basename(os.path.abspath(file)))  # noqa: PTH100, PTH119


def find_files(sources: Sequence[str]) -> list[ResourceFile]:
    """Return the files of these sources and, for folders, those below them. Exits if there are too many."""
    found: list[ResourceFile] = []
    for source in sources:
        if source == STREAM:
            usage_error("`-` cannot be added with other files", "add standard input on its own, with --name")
        if os.path.isdir(source):  # noqa: PTH112
            found += _below(source)
        else:
            found.append(ResourceFile(source, os.path.basename(source)))  # noqa: PTH119
        if len(found) > MAX_FILES:
            refuse(f"At most {MAX_FILES:,} files can be added at once", "add the folders one by one")
    if not found:
        refuse("There are no files to add", "hidden files and links are skipped")
    return found


def _below(folder: str) -> Iterator[ResourceFile]:
    top = os.path.abspath(folder)  # noqa: PTH100
    # The current folder is where the paths begin; another one is part of them.
    prefix = "" if top == os.getcwd() else f"{os.path.basename(top)}/"  # noqa: PTH109, PTH119
    entries = files.walk(folder, enter=lambda entry: not entry.name.startswith("."), limit=_MAX_ENTRIES)
    try:
        for entry in entries:
            if entry.kind == "file" and not entry.name.startswith("."):
                yield ResourceFile(os.path.join(folder, entry.path), prefix + entry.path)  # noqa: PTH118
    except files.TooManyFiles:
        refuse(
            f"{label(folder)} has more than {_MAX_ENTRIES:,} entries", "add the folders below it one by one"
        )
    except OSError as error:
        refuse(f"{label(folder)} could not be read: {files.describe(error)}", status=ExitStatus.NOT_FOUND)


def read_files(found: Sequence[ResourceFile]) -> list[NewResource]:
    """Read the files. Exits if one cannot be read, or if they are too large together."""
    resources, size = [], 0
    with progress() as show:
        for number, file in enumerate(found, start=1):
            show(f"Reading {number:,} of {format_count(len(found), 'file')}")
            content = read_bytes(file.source, CONTENT_BYTES)
            size += len(content)
            if size > MAX_BYTES:
                refuse(f"The files have more than {format_size(MAX_BYTES)}", "add fewer of them at once")
            resources.append(
                NewResource(
                    name=resource_name(file.path),
                    # Slashes separate folders also in the URI.
                    uri=f"dittybag://resources/{quote(os.fsencode(file.path))}",
                    content=content,
                    mime_type=guess_mime_type(file.path, content),
                )
            )
    return resources
