"""File names for entities: valid on every operating system, and always the same for the same entity name."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

from dittybag.domain.names import transliterate

_LENGTH: Final = 100
_SAFE: Final = re.compile(r"[a-z0-9_][a-z0-9._-]*")
_OTHERS: Final = re.compile(r"[^A-Za-z0-9_]+")
#: Device names on Windows, with or without an extension.
_DEVICES: Final = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


def file_name(name: str, *, digits: int = 8) -> str:
    """Return the file name for an entity name, without an extension.

    A name that some file system rejects, changes or does not distinguish from another gets a hash suffix:
    `Notes` and `notes` are the same file on many disks.
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
    """Return the file name of a task: its id, and the beginning of its title for readability."""
    words = _OTHERS.sub("-", transliterate(title[:200]).lower())[:40].strip("-")
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
    """Return the extension of a content file. Unlike `mimetypes`, it does not depend on the system."""
    return _EXTENSIONS.get(mime_type.partition(";")[0].strip().lower(), "txt" if text else "bin")
