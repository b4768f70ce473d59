"""Guesses MIME types from file names and first bytes."""

from __future__ import annotations

import os
from typing import Final

from dittybag.domain.resources import DEFAULT_MIME_TYPE, is_text

BINARY: Final = "application/octet-stream"

#: Types that the standard library does not know, or that differ between systems.
_BY_ENDING: Final = {
    ".avif": "image/avif",
    ".cfg": "text/plain",
    ".css": "text/css",
    ".csv": "text/csv",
    ".go": "text/x-go",
    ".html": "text/html",
    ".ini": "text/plain",
    ".ipynb": "application/x-ipynb+json",
    ".java": "text/x-java",
    ".js": "text/javascript",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".log": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".mdx": "text/markdown",
    ".ndjson": "application/x-ndjson",
    ".py": "text/x-python",
    ".rb": "text/x-ruby",
    ".rs": "text/x-rust",
    ".rst": "text/x-rst",
    ".sh": "application/x-sh",
    ".sql": "application/sql",
    ".svg": "image/svg+xml",
    ".toml": "application/toml",
    ".ts": "text/x-typescript",
    ".tsx": "text/x-typescript",
    ".tsv": "text/tab-separated-values",
    ".txt": "text/plain",
    ".webp": "image/webp",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_BY_BEGINNING: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)


def guess_mime_type(file: str, content: bytes) -> str:
    """Return the most likely type; never a text type for binary content."""
    named = _named(file)
    if named is None:
        found = next((kind for start, kind in _BY_BEGINNING if content.startswith(start)), BINARY)
        return DEFAULT_MIME_TYPE if found == BINARY and _is_text(content) else found
    return BINARY if is_text(named) and not _is_text(content) else named


def extension_of(mime_type: str) -> str:
    """Return the usual extension of files of a type, as in `.md`; empty if there is none."""
    from mimetypes import MimeTypes

    known = [ending for ending, kind in _BY_ENDING.items() if kind == mime_type]
    guessed = MimeTypes().guess_extension(mime_type) or ""
    return guessed if guessed in known or not known else known[0]


def _named(file: str) -> str | None:
    ending = os.path.splitext(file)[1].lower()  # noqa: PTH122
    if ending in _BY_ENDING:
        return _BY_ENDING[ending]
    from mimetypes import MimeTypes

    # Only the built-in table: the types installed on a machine would make guesses differ.
    kind, encoding = MimeTypes().guess_type(os.path.basename(file))  # noqa: PTH119
    return f"application/{encoding}" if encoding else kind


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False
