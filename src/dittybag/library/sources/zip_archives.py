"""Zip archives as library sources.

The standard library's `zipfile` reads the directory. It trusts that directory, cuts names at NUL, and accepts
overlapping entries and data after the end of an entry, so everything is checked here: every archive that two
readers could interpret differently is refused.
"""

from __future__ import annotations

import stat
import struct
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

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
_LOCAL: Final = struct.Struct("<4s5H3L2H")
_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
_SIZES_FOLLOW: Final = 0x8
_IN_ZIP64: Final = 0xFFFFFFFF
_ZIP64_LOCATOR_BYTES: Final = 20


def unpack(archive: Path, folder: str, target: LimitedCopy) -> None:
    """Copy the files of an archive, or only those below `folder`.

    The archive must not change meanwhile. Raises `LibraryRefused`.
    """
    with archive.open("rb") as file:
        entries, directory_offset = _read_directory(file, target)
        for entry in entries:
            _check_entry(entry, target)
        _check_names(entries, target)
        offsets = _content_offsets(file, entries, directory_offset, target)
        kept = [entry for entry in entries if not entry.orig_filename.startswith("__MACOSX/")]
        top = _common_folder(kept)
        prefix = f"{top}{folder}/" if folder else top
        if folder and not any(entry.orig_filename.startswith(prefix) for entry in kept):
            raise target.refusal(f"there is no folder '{printable(folder)}' in it")
        for entry in kept:
            if _is_folder(entry) or not entry.orig_filename.startswith(prefix):
                continue
            path = entry.orig_filename[len(prefix) :]
            if target.accepts(path) and _check_ratio(entry, target) and target.fits(path, entry.file_size):
                target.write(path, _read_content(file, entry, offsets[entry.header_offset], target))


def _read_directory(file: BinaryIO, target: LimitedCopy) -> tuple[list[ZipInfo], int]:
    """All entries, and the offset of the directory. Its size is checked before it is read."""
    count, offset = _check_end_record(file, target)
    try:
        with ZipFile(file, metadata_encoding="utf-8") as archive:
            entries = archive.infolist()
    except UnicodeDecodeError as error:
        name = printable(error.object.decode("utf-8", "replace"))
        raise target.refusal(
            f"entry '{name}': the name is not valid UTF-8; create the archive with another program"
        ) from None
    except (BadZipFile, NotImplementedError, struct.error):
        raise target.refusal("the archive is damaged: its directory is incomplete") from None
    if len(entries) < count:
        raise target.refusal("the archive is damaged: its directory is incomplete")
    if len(entries) > count:
        raise target.refusal("the archive is damaged: its directory has extra data")
    return entries, offset


def _check_end_record(file: BinaryIO, target: LimitedCopy) -> tuple[int, int]:
    """The number of entries and the offset of the directory, from the record at the end of the archive."""
    length = file.seek(0, 2)
    tail = min(length, _END.size + 0xFFFF + _ZIP64_LOCATOR_BYTES)
    file.seek(length - tail)
    data = file.read(tail)
    # `zipfile` uses the last record, even if it is in the comment of another one.
    at = data.rfind(b"PK\5\6")
    if at < 0 or at + _END.size > len(data):
        raise target.refusal("not a complete zip archive; download it again")
    (_, disk, directory_disk, count_here, count, size, offset, comment) = _END.unpack_from(data, at)
    if at + _END.size + comment != len(data):
        raise target.refusal("not a complete zip archive; download it again")
    if disk or directory_disk or count_here != count:
        raise target.refusal("the archive is split into several files; join them first")
    has_locator = data.startswith(b"PK\6\7", max(0, at - _ZIP64_LOCATOR_BYTES))
    if _IN_ZIP64 in (size, offset) or count == 0xFFFF or has_locator:
        raise target.refusal("Zip64 archives are not supported; unpack it and add the folder")
    if offset + size != length - tail + at:
        raise target.refusal("the archive is damaged: its directory is not at the recorded offset")
    if size > DIRECTORY_BYTES or count > target.limits.entries:
        raise target.too_many_entries()
    return count, offset


def _check_entry(entry: ZipInfo, target: LimitedCopy) -> None:
    label = _label(entry)
    if max(entry.compress_size, entry.file_size, entry.header_offset) >= _IN_ZIP64:
        raise target.too_large(f"{label} is too large for a library")
    if entry.flag_bits & _ENCRYPTED:
        raise target.refusal(f"{label} is encrypted; unpack the archive and add the folder")
    if entry.volume:
        raise target.refusal(f"{label} is in another file of a split archive")
    # Only archives created on Unix have a mode. Others are checked in the same way.
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind == stat.S_IFLNK:
        raise target.refusal(f"{label} is a symbolic link; unpack the archive and add the folder")
    if kind not in (0, stat.S_IFDIR if _is_folder(entry) else stat.S_IFREG):
        raise target.refusal(f"{label} is not a regular file or a folder")


def _label(entry: ZipInfo) -> str:
    return f"entry '{printable(entry.orig_filename)}'"


def _is_folder(entry: ZipInfo) -> bool:
    return entry.orig_filename.endswith("/")


def _check_names(entries: Sequence[ZipInfo], target: LimitedCopy) -> None:
    """Check that all paths are valid, and that no two are the same file on any file system."""
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for entry in entries:
        path = entry.orig_filename.removesuffix("/")
        if problem := path_problem(path):
            raise target.refusal(f"{_label(entry)}: {problem}")
        key = unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())
        if not _is_folder(entry):
            if key in files:
                raise target.refusal(
                    f"entry '{printable(path)}' occurs twice or differs from another entry only in case"
                )
            files[key] = path
        ancestors = key.split("/")
        for depth in range(1, len(ancestors) + _is_folder(entry)):
            folders["/".join(ancestors[:depth])] = path
    for key, path in files.items():
        if key in folders:
            raise target.refusal(f"entry '{printable(path)}' is both a file and a folder")


def _content_offsets(
    file: BinaryIO, entries: Sequence[ZipInfo], directory_offset: int, target: LimitedCopy
) -> dict[int, int]:
    """The content offset of each entry, by entry offset. Raises `LibraryRefused` if entries overlap."""
    offsets = {}
    ordered = sorted(entries, key=lambda entry: entry.header_offset)
    bounds = [*(entry.header_offset for entry in ordered[1:]), directory_offset]
    for entry, bound in zip(ordered, bounds, strict=False):
        start = _content_offset(file, entry, target)
        if start + entry.compress_size > bound:
            raise target.refusal(f"{_label(entry)} overlaps with another entry")
        offsets[entry.header_offset] = start
    return offsets


def _content_offset(file: BinaryIO, entry: ZipInfo, target: LimitedCopy) -> int:
    """The content offset of an entry, after comparing its local header with the directory."""
    file.seek(entry.header_offset)
    header = file.read(_LOCAL.size)
    if len(header) < _LOCAL.size or header[:4] != b"PK\3\4":
        raise target.refusal(f"{_label(entry)} is not at the offset in the directory")
    fields: tuple[int, ...] = _LOCAL.unpack(header)
    (_, _, flags, method, _, _, checksum, compressed_size, size, name_length, extra_length) = fields
    name = file.read(name_length)
    if size == compressed_size == _IN_ZIP64:
        size, compressed_size = _zip64_sizes(file.read(extra_length))
    same = (name, method, flags & _ENCRYPTED) == (entry.orig_filename.encode(), entry.compress_type, 0)
    if not flags & _SIZES_FOLLOW:
        recorded = (entry.CRC, entry.compress_size, entry.file_size)
        same = same and (checksum, compressed_size, size) == recorded
    if not same:
        raise target.refusal(f"{_label(entry)} does not match its description in the directory")
    return entry.header_offset + _LOCAL.size + name_length + extra_length


def _zip64_sizes(extra: bytes) -> tuple[int, int]:
    """The sizes in a Zip64 extra field, which some programs write even for small files."""
    if len(extra) >= 20 and extra[:4] == b"\1\0\x10\0":
        size, compressed_size = struct.unpack_from("<2Q", extra, 4)
        return size, compressed_size
    return _IN_ZIP64, _IN_ZIP64


def _common_folder(entries: Sequence[ZipInfo]) -> str:
    """The folder that contains all entries, as in archives of a repository; empty if there is none."""
    names = (entry.orig_filename for entry in entries)
    paths = [name for name in names if not is_junk_file(name.rpartition("/")[2])]
    tops = {path.partition("/")[0] for path in paths}
    if len(tops) != 1 or not all("/" in path for path in paths):
        return ""
    top = tops.pop()
    # Keep hidden folders: the name .claude decides how its files are read.
    return "" if top.startswith(".") else f"{top}/"


def _check_ratio(entry: ZipInfo, target: LimitedCopy) -> bool:
    """Return True, or raise `LibraryRefused` for a zip bomb."""
    packed, size = entry.compress_size, entry.file_size
    if size > _SMALL_BYTES and size > _MAX_RATIO * packed:
        raise target.refusal(
            f"{_label(entry)} looks like a zip bomb: {packed:,} bytes expand to {size:,} bytes"
        )
    return True


def _read_content(file: BinaryIO, entry: ZipInfo, start: int, target: LimitedCopy) -> Iterator[bytes]:
    """Yield the content of an entry, at most its recorded size, then verify size and checksum."""
    if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise target.refusal(f"{_label(entry)} uses an unsupported compression method; use 'deflate'")
    size = checksum = 0
    packed = _read_packed(file, start, entry.compress_size)
    try:
        for chunk in packed if entry.compress_type == ZIP_STORED else _inflate(packed):
            size += len(chunk)
            checksum = zlib.crc32(chunk, checksum)
            if size > entry.file_size:
                break
            yield chunk
    except zlib.error:
        raise target.refusal(f"{_label(entry)} is damaged; download the archive again") from None
    if size != entry.file_size:
        raise target.refusal(f"{_label(entry)} does not have its recorded size")
    if checksum != entry.CRC:
        raise target.refusal(f"{_label(entry)} is damaged: the checksum is wrong; download the archive again")


def _read_packed(file: BinaryIO, start: int, left: int) -> Iterator[bytes]:
    file.seek(start)
    while left and (chunk := file.read(min(_CHUNK_BYTES, left))):
        left -= len(chunk)
        yield chunk


def _inflate(packed: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the decompressed content. Raises `zlib.error` unless the stream ends with the entry."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    for chunk in packed:
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
