"""Things to make libraries of: trees of files, Git repositories, and zip archives however crooked."""

from __future__ import annotations

import struct
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct


def plant(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files, by path."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def tree(folder: Path) -> dict[str, str]:
    """All files, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(errors="replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def leftovers(home: Path) -> list[str]:
    """What is left of changes that should be over."""
    own = home / "libraries" / ".dittybag"
    if not own.exists():
        return []
    return sorted(
        p.name for p in own.iterdir() if p.name.startswith("work-") or p.name.endswith(".next.json")
    )


def git(folder: Path, *arguments: str) -> str:
    """Run Git as somebody."""
    command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.strip()


def commit(folder: Path, files: Mapping[str, str] | None = None) -> str:
    """Commit everything that is there, and these files; the commit."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet", "--initial-branch=main")
    plant(folder, files or {})
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=more")
    return git(folder, "rev-parse", "HEAD")


class Item(Struct, frozen=True, kw_only=True):
    """An entry of an archive. What is None is as it should be."""

    name: bytes
    content: bytes = b"text"
    method: int = 8
    flags: int = 0x800
    mode: int = 0o100644
    #: What the directory at the end says, and what the entry says itself.
    size: int | None = None
    packed: int | None = None
    checksum: int | None = None
    at: int | None = None
    local_name: bytes | None = None
    local_size: int | None = None
    local_flags: int | None = None
    #: The bytes that stand for the content.
    data: bytes | None = None


def deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


def zipped(
    items: Sequence[Item], *, count: int | None = None, offset: int | None = None, comment: bytes = b""
) -> bytes:
    """An archive, put together by hand."""
    body = bytearray()
    directory = bytearray()
    for item in items:
        at = len(body)
        data = item.data
        if data is None:
            data = deflated(item.content) if item.method == 8 else item.content
        size = len(item.content) if item.size is None else item.size
        packed = len(data) if item.packed is None else item.packed
        checksum = zlib.crc32(item.content) if item.checksum is None else item.checksum
        local_name = item.name if item.local_name is None else item.local_name
        local_size = size if item.local_size is None else item.local_size
        local_flags = item.flags if item.local_flags is None else item.local_flags
        body += struct.pack(
            "<4s5H3L2H",
            b"PK\3\4", 20, local_flags, item.method, 0, 0, checksum, packed, local_size, len(local_name), 0,
        )  # fmt: skip
        body += local_name + data
        directory += struct.pack(
            "<4s6H3L5H2L",
            b"PK\1\2", 0x314, 20, item.flags, item.method, 0, 0, checksum, packed, size, len(item.name),
            0, 0, 0, 0, item.mode << 16, at if item.at is None else item.at,
        )  # fmt: skip
        directory += item.name
    number = len(items) if count is None else count
    end = struct.pack(
        "<4s4H2LH",
        b"PK\5\6", 0, 0, number, number, len(directory),
        len(body) if offset is None else offset, len(comment),
    )  # fmt: skip
    return bytes(body + directory) + end + comment


def archive(path: Path, files: Mapping[str, str]) -> Path:
    """A well-formed archive."""
    path.write_bytes(
        zipped([Item(name=name.encode(), content=text.encode()) for name, text in files.items()])
    )
    return path


def descriptors() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))
