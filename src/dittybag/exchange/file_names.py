"""Names of files: safe on every system, whatever things are called, and the same for the same name."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

_LENGTH: Final = 100
_SAFE: Final = re.compile(r"[a-z0-9_][a-z0-9._-]*")
_OTHERS: Final = re.compile(r"[^A-Za-z0-9_]+")
#: Windows takes these for devices, whatever comes after a dot.
_DEVICES: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


def file_name(name: str, *, digits: int = 8) -> str:
    """What the file of a thing is called, without an extension.

    A name that some system would change, refuse or take for another gets digits that belong to it alone:
    `Notes` and `notes` are one file on many disks.
    """
    if (
        _SAFE.fullmatch(name)
        and len(name) <= _LENGTH
        and not name.endswith(".")
        and not _DEVICES.fullmatch(name)
    ):
        return name
    words = _OTHERS.sub("-", name)[: _LENGTH - 20].strip("-") or "x"
    return f"{words}~{sha256(name.encode()).hexdigest()[:digits]}"


def task_file_name(id: int, title: str) -> str:
    """What the file of a task is called: its number, and some of its title for people."""
    words = _OTHERS.sub("-", title[:200].lower())[:40].strip("-")
    return f"{id:06d}-{words}.md" if words else f"{id:06d}.md"


_EXTENSIONS: Final = {
    "text/plain": "txt",
    "text/markdown": "md",
    "text/html": "html",
    "text/css": "css",
    "text/csv": "csv",
    "text/xml": "xml",
    "text/javascript": "js",
    "text/yaml": "yaml",
    "application/json": "json",
    "application/xml": "xml",
    "application/yaml": "yaml",
    "application/x-yaml": "yaml",
    "application/toml": "toml",
    "application/sql": "sql",
    "application/javascript": "js",
    "application/pdf": "pdf",
    "application/zip": "zip",
    "application/gzip": "gz",
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/svg+xml": "svg",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "video/mp4": "mp4",
}


def extension(mime_type: str, *, text: bool) -> str:
    """What the name of a content ends with. The same everywhere: no system is asked."""
    return _EXTENSIONS.get(mime_type.partition(";")[0].strip().lower(), "txt" if text else "bin")
