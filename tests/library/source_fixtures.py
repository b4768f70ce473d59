"""Library sources for tests: folders, Git repositories, and zip archives, also malformed ones."""

from __future__ import annotations

import struct
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from tests.programs import GIT


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files, given by path, and return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def read_files(folder: Path) -> dict[str, str]:
    """The text of all files below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(errors="replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def leftovers(home: Path) -> list[str]:
    """Staging folders and pending records, of which none should remain after a change."""
    own = home / "libraries" / ".dittybag"
    if not own.exists():
        return []
    return sorted(
        p.name for p in own.iterdir() if p.name.startswith("work-") or p.name.endswith(".next.json")
    )


def git(folder: Path, *arguments: str) -> str:
    """Run Git with a fixed user, and return its output."""
    command = [GIT.require(), "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.strip()


def commit(folder: Path, files: Mapping[str, str] | None = None) -> str:
    """Write these files, commit everything, and return the commit id."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet", "--initial-branch=main")
    write_files(folder, files or {})
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=more")
    return git(folder, "rev-parse", "HEAD")


class ZipItem(Struct, frozen=True, kw_only=True):
    """An entry of an archive. Fields that are None get their correct value."""

    name: bytes
    content: bytes = b"text"
    method: int = 8
    flags: int = 0x800
    mode: int = 0o100644
    #: Values in the directory; `local_` fields are those of the entry's own header.
    size: int | None = None
    packed: int | None = None
    checksum: int | None = None
    at: int | None = None
    local_name: bytes | None = None
    local_size: int | None = None
    local_flags: int | None = None
    #: The compressed content.
    data: bytes | None = None


def deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(content) + packer.flush()


def build_zip(
    items: Sequence[ZipItem], *, count: int | None = None, offset: int | None = None, comment: bytes = b""
) -> bytes:
    """Build an archive from raw fields, which may be invalid."""
    body = bytearray()
    directory = bytearray()
    for item in items:
        at = len(body)
        data = item.data
        if data is None:
            data = deflate(item.content) if item.method == 8 else item.content
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


def write_zip(path: Path, files: Mapping[str, str]) -> Path:
    """Write a valid archive and return its path."""
    path.write_bytes(
        build_zip([ZipItem(name=name.encode(), content=text.encode()) for name, text in files.items()])
    )
    return path


def descriptors() -> int:
    """The number of open file descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))
