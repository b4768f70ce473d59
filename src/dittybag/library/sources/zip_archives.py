"""Zip archives as library sources, read by a strict parser.

The standard library's `zipfile` trusts the directory at the end of the file, cuts names at NUL and accepts
overlapping entries. This parser refuses every archive that two readers could interpret differently.
"""

from __future__ import annotations

import stat
import struct
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct

from dittybag.library.relative_paths import is_junk_file, path_problem, printable
from dittybag.library.sources.limited_copy import LimitedCopy

#: An archive may be larger than a library, because some of its files may be skipped.
ARCHIVE_BYTES: Final = 256 * 1024 * 1024
#: The directory of the archive is held in memory.
DIRECTORY_BYTES: Final = 32 * 1024 * 1024

#: A larger entry with a higher compression ratio is treated as a zip bomb. Text reaches 10, rarely 50.
_MAX_RATIO: Final = 200
_SMALL_BYTES: Final = 1024 * 1024

_CHUNK_BYTES: Final = 64 * 1024

_END: Final = struct.Struct("<4s4H2LH")
_ENTRY: Final = struct.Struct("<4s6H3L5H2L")
_LOCAL: Final = struct.Struct("<4s5H3L2H")
_STORED: Final = 0
_DEFLATED: Final = 8
_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
_SIZES_FOLLOW: Final = 0x8
_IN_ZIP64: Final = 0xFFFFFFFF


class ZipEntry(Struct, frozen=True, kw_only=True):
    """A file or folder in the directory of the archive."""

    path: str
    raw_name: bytes
    is_folder: bool
    flags: int
    method: int
    checksum: int
    compressed_size: int
    size: int
    offset: int


def unpack(archive: Path, folder: str, target: LimitedCopy) -> None:
    """Copy the files of an archive, or only those below `folder`.

    The archive must not change meanwhile. Raises `LibraryRefused`.
    """
    with archive.open("rb") as file:
        entries, directory_offset = _read_directory(file, target)
        _check_names(entries, target)
        offsets = _content_offsets(file, entries, directory_offset, target)
        kept = [entry for entry in entries if not entry.path.startswith("__MACOSX/")]
        top = _common_folder(kept)
        prefix = f"{top}{folder}/" if folder else top
        if folder and not any(entry.path.startswith(prefix) for entry in kept):
            raise target.refusal(f"there is no folder '{printable(folder)}' in it")
        for entry in kept:
            if entry.is_folder or not entry.path.startswith(prefix):
                continue
            path = entry.path[len(prefix) :]
            if target.accepts(path) and _check_ratio(entry, target) and target.fits(path, entry.size):
                target.write(path, _read_content(file, entry, offsets[entry.offset], target))


def _read_directory(file: BinaryIO, target: LimitedCopy) -> tuple[list[ZipEntry], int]:
    """All entries, and the offset of the directory."""
    length = file.seek(0, 2)
    end_offset, (_, disk, directory_disk, count_here, count, size, offset, _) = _find_end_record(
        file, length, target
    )
    if disk or directory_disk or count_here != count:
        raise target.refusal("the archive is split into several files; join them first")
    if _IN_ZIP64 in (size, offset) or count == 0xFFFF:
        raise target.refusal("Zip64 archives are not supported; unpack it and add the folder")
    if offset + size != end_offset:
        raise target.refusal("the archive is damaged: its directory is not at the recorded offset")
    if size > DIRECTORY_BYTES or count > target.limits.entries:
        raise target.too_many_entries()
    file.seek(offset)
    data = file.read(size)
    entries = []
    position = 0
    for _number in range(count):
        entry, position = _parse_entry(data, position, target)
        entries.append(entry)
    if position != size:
        raise target.refusal("the archive is damaged: its directory has extra data")
    return entries, offset


def _find_end_record(file: BinaryIO, length: int, target: LimitedCopy) -> tuple[int, tuple[int, ...]]:
    """The offset and the fields of the end record, which may be followed by a comment."""
    tail = min(length, _END.size + 0xFFFF)
    file.seek(length - tail)
    data = file.read(tail)
    offset = data.rfind(b"PK\5\6")
    while offset >= 0:
        if offset + _END.size <= len(data):
            fields = _END.unpack_from(data, offset)
            if offset + _END.size + fields[-1] == len(data):
                return length - tail + offset, fields
        offset = data.rfind(b"PK\5\6", 0, offset)
    raise target.refusal("not a complete zip archive; download it again")


def _parse_entry(data: bytes, position: int, target: LimitedCopy) -> tuple[ZipEntry, int]:
    if position + _ENTRY.size > len(data):
        raise target.refusal("the archive is damaged: its directory is incomplete")
    fields = _ENTRY.unpack_from(data, position)
    (signature, _, _, flags, method, _, _, checksum, compressed_size, size) = fields[:10]
    (name_length, extra_length, comment_length, disk, _, attributes, offset) = fields[10:]
    name_at = position + _ENTRY.size
    end = name_at + name_length + extra_length + comment_length
    if signature != b"PK\1\2" or end > len(data):
        raise target.refusal("the archive is damaged: its directory is incomplete")
    raw_name = data[name_at : name_at + name_length]
    label = f"entry '{printable(raw_name.decode('utf-8', 'replace'))}'"
    try:
        name = raw_name.decode()
    except UnicodeDecodeError:
        raise target.refusal(
            f"{label}: the name is not valid UTF-8; create the archive with another program"
        ) from None
    if _IN_ZIP64 in (compressed_size, size, offset):
        raise target.too_large(f"{label} is too large for a library")
    if flags & _ENCRYPTED:
        raise target.refusal(f"{label} is encrypted; unpack the archive and add the folder")
    if disk:
        raise target.refusal(f"{label} is in another file of a split archive")
    is_folder = name.endswith("/")
    # Only archives created on Unix have a mode. Others are checked in the same way.
    kind = stat.S_IFMT(attributes >> 16)
    if kind == stat.S_IFLNK:
        raise target.refusal(f"{label} is a symbolic link; unpack the archive and add the folder")
    if kind not in (0, stat.S_IFDIR if is_folder else stat.S_IFREG):
        raise target.refusal(f"{label} is not a regular file or a folder")
    entry = ZipEntry(
        path=name,
        raw_name=raw_name,
        is_folder=is_folder,
        flags=flags,
        method=method,
        checksum=checksum,
        compressed_size=compressed_size,
        size=size,
        offset=offset,
    )
    return entry, end


def _check_names(entries: Sequence[ZipEntry], target: LimitedCopy) -> None:
    """Check that all paths are valid, and that no two are the same file on any file system."""
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for entry in entries:
        path = entry.path.removesuffix("/")
        if problem := path_problem(path):
            raise target.refusal(f"entry '{printable(entry.path)}': {problem}")
        key = unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())
        if not entry.is_folder:
            if key in files:
                raise target.refusal(
                    f"entry '{printable(path)}' occurs twice or differs from another entry only in case"
                )
            files[key] = path
        ancestors = key.split("/")
        for depth in range(1, len(ancestors) + entry.is_folder):
            folders["/".join(ancestors[:depth])] = path
    for key, path in files.items():
        if key in folders:
            raise target.refusal(f"entry '{printable(path)}' is both a file and a folder")


def _content_offsets(
    file: BinaryIO, entries: Sequence[ZipEntry], directory_offset: int, target: LimitedCopy
) -> dict[int, int]:
    """The content offset of each entry, by entry offset. Raises `LibraryRefused` if entries overlap."""
    offsets = {}
    ordered = sorted(entries, key=lambda entry: entry.offset)
    bounds = [*(entry.offset for entry in ordered[1:]), directory_offset]
    for entry, bound in zip(ordered, bounds, strict=False):
        start = _content_offset(file, entry, target)
        if start + entry.compressed_size > bound:
            raise target.refusal(f"entry '{printable(entry.path)}' overlaps with another entry")
        offsets[entry.offset] = start
    return offsets


def _content_offset(file: BinaryIO, entry: ZipEntry, target: LimitedCopy) -> int:
    """The content offset of an entry, after comparing its local header with the directory."""
    label = f"entry '{printable(entry.path)}'"
    file.seek(entry.offset)
    header = file.read(_LOCAL.size)
    if len(header) < _LOCAL.size or header[:4] != b"PK\3\4":
        raise target.refusal(f"{label} is not at the offset in the directory")
    fields: tuple[int, ...] = _LOCAL.unpack(header)
    (_, _, flags, method, _, _, checksum, compressed_size, size, name_length, extra_length) = fields
    name = file.read(name_length)
    if size == compressed_size == _IN_ZIP64:
        size, compressed_size = _zip64_sizes(file.read(extra_length))
    same = (name, method, flags & _ENCRYPTED) == (entry.raw_name, entry.method, entry.flags & _ENCRYPTED)
    if not flags & _SIZES_FOLLOW:
        same = same and (checksum, compressed_size, size) == (
            entry.checksum,
            entry.compressed_size,
            entry.size,
        )
    if not same:
        raise target.refusal(f"{label} does not match its description in the directory")
    return entry.offset + _LOCAL.size + name_length + extra_length


def _zip64_sizes(extra: bytes) -> tuple[int, int]:
    """The sizes in a Zip64 extra field, which some programs write even for small files."""
    if len(extra) >= 20 and extra[:4] == b"\1\0\x10\0":
        size, compressed_size = struct.unpack_from("<2Q", extra, 4)
        return size, compressed_size
    return _IN_ZIP64, _IN_ZIP64


def _common_folder(entries: Sequence[ZipEntry]) -> str:
    """The folder that contains all entries, as in archives of a repository; empty if there is none."""
    paths = [entry.path for entry in entries if not is_junk_file(entry.path.rpartition("/")[2])]
    tops = {path.partition("/")[0] for path in paths}
    if len(tops) != 1 or not all("/" in path for path in paths):
        return ""
    top = tops.pop()
    # Keep hidden folders: the name .claude decides how its files are read.
    return "" if top.startswith(".") else f"{top}/"


def _check_ratio(entry: ZipEntry, target: LimitedCopy) -> bool:
    """Return True, or raise `LibraryRefused` for a zip bomb."""
    if entry.size > _SMALL_BYTES and entry.size > _MAX_RATIO * entry.compressed_size:
        raise target.refusal(
            f"entry '{printable(entry.path)}' looks like a zip bomb: "
            f"{entry.compressed_size:,} bytes expand to {entry.size:,} bytes"
        )
    return True


def _read_content(file: BinaryIO, entry: ZipEntry, start: int, target: LimitedCopy) -> Iterator[bytes]:
    """Yield the content of an entry, at most its recorded size, then verify size and checksum."""
    label = f"entry '{printable(entry.path)}'"
    if entry.method not in (_STORED, _DEFLATED):
        raise target.refusal(f"{label} uses an unsupported compression method; use 'deflate'")
    size = checksum = 0
    read = _read_stored if entry.method == _STORED else _inflate
    try:
        for chunk in read(file, start, entry):
            size += len(chunk)
            checksum = zlib.crc32(chunk, checksum)
            if size > entry.size:
                break
            yield chunk
    except zlib.error:
        raise target.refusal(f"{label} is damaged; download the archive again") from None
    if size != entry.size:
        raise target.refusal(f"{label} does not have its recorded size")
    if checksum != entry.checksum:
        raise target.refusal(f"{label} is damaged: the checksum is wrong; download the archive again")


def _read_stored(file: BinaryIO, start: int, entry: ZipEntry) -> Iterator[bytes]:
    file.seek(start)
    left = entry.compressed_size
    while left and (chunk := file.read(min(_CHUNK_BYTES, left))):
        left -= len(chunk)
        yield chunk


def _inflate(file: BinaryIO, start: int, entry: ZipEntry) -> Iterator[bytes]:
    """Yield the decompressed content. Raises `zlib.error` unless the stream ends with the entry."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    for chunk in _read_stored(file, start, entry):
        if inflater.eof:
            raise zlib.error("more after the end")
        rest = chunk
        while rest and not inflater.eof:
            # Decompress at most one chunk at a time, to limit memory.
            yield inflater.decompress(rest, _CHUNK_BYTES)
            rest = inflater.unconsumed_tail
    while not inflater.eof:
        if not (last := inflater.decompress(inflater.unconsumed_tail, _CHUNK_BYTES)):
            break
        yield last
    if not inflater.eof or inflater.unused_data:
        raise zlib.error("no end, or more after it")
