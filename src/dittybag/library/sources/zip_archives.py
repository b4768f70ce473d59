"""Zip archives as sources of libraries, read with suspicion.

Our own reader rather than `zipfile`, which believes the directory at the end of the file, cuts names at NUL
and lets entries overlap. Whatever two readers could understand differently is refused: an archive is either
as every tool would pack it, or nothing of it is taken.
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

from dittybag.library.relative_paths import is_junk_file, path_problem, shown
from dittybag.library.sources.limited_copy import LimitedCopy

#: What is left out may make an archive larger than a library.
ARCHIVE_BYTES: Final = 256 * 1024 * 1024
#: The list of entries is held in memory.
DIRECTORY_BYTES: Final = 32 * 1024 * 1024

#: An entry that grows by more than this, and is not small, is a bomb. Text grows tenfold, seldom fiftyfold.
_RATIO: Final = 200
_SMALL: Final = 1024 * 1024

_PIECE: Final = 64 * 1024

_END: Final = struct.Struct("<4s4H2LH")
_ENTRY: Final = struct.Struct("<4s6H3L5H2L")
_LOCAL: Final = struct.Struct("<4s5H3L2H")
_STORED: Final = 0
_DEFLATED: Final = 8
_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
_SIZES_FOLLOW: Final = 0x8
_ABSENT: Final = 0xFFFFFFFF


class ZipEntry(Struct, frozen=True, kw_only=True):
    """A file or folder, as the directory of the archive describes it."""

    path: str
    raw_name: bytes
    is_folder: bool
    flags: int
    method: int
    checksum: int
    packed: int
    size: int
    at: int


def unpack(archive: Path, folder: str, intake: LimitedCopy) -> None:
    """Take all files of an archive that nobody else writes to, or only those below `folder`."""
    with archive.open("rb") as file:
        entries, directory_at = _directory(file, intake)
        _check_names(entries, intake)
        places = _places(file, entries, directory_at, intake)
        wanted = [entry for entry in entries if not entry.path.startswith("__MACOSX/")]
        top = _common_top(wanted)
        within = f"{top}{folder}/" if folder else top
        if folder and not any(entry.path.startswith(within) for entry in wanted):
            raise intake.refusal(f"has no folder '{shown(folder)}'")
        for entry in wanted:
            if entry.is_folder or not entry.path.startswith(within):
                continue
            path = entry.path[len(within) :]
            if intake.wants(path) and _is_no_bomb(entry, intake) and intake.fits(path, entry.size):
                intake.take(path, _content(file, entry, places[entry.at], intake))


def _directory(file: BinaryIO, intake: LimitedCopy) -> tuple[list[ZipEntry], int]:
    """All entries, and where their directory begins."""
    length = file.seek(0, 2)
    at, (_, disk, directory_disk, here, count, size, offset, _) = _end(file, length, intake)
    if disk or directory_disk or here != count:
        raise intake.refusal("is one part of an archive of several; give the whole archive")
    if _ABSENT in (size, offset) or count == 0xFFFF:
        raise intake.refusal("is a Zip64 archive, for more than a library may hold")
    if offset + size != at:
        raise intake.refusal("is damaged or padded: its directory is not where it says")
    if size > DIRECTORY_BYTES or count > intake.limits.entries:
        raise intake.refusal(f"holds more than {intake.limits.entries:,} files and folders")
    file.seek(offset)
    data = file.read(size)
    entries = []
    position = 0
    for _number in range(count):
        entry, position = _entry(data, position, intake)
        entries.append(entry)
    if position != size:
        raise intake.refusal("is damaged: its directory has more in it than it says")
    return entries, offset


def _end(file: BinaryIO, length: int, intake: LimitedCopy) -> tuple[int, tuple[int, ...]]:
    """Where the last record begins, and what it says. A comment may follow it."""
    tail = min(length, _END.size + 0xFFFF)
    file.seek(length - tail)
    data = file.read(tail)
    at = data.rfind(b"PK\5\6")
    while at >= 0:
        if at + _END.size <= len(data):
            fields = _END.unpack_from(data, at)
            if at + _END.size + fields[-1] == len(data):
                return length - tail + at, fields
        at = data.rfind(b"PK\5\6", 0, at)
    raise intake.refusal("is no complete zip archive; fetch it again")


def _entry(data: bytes, position: int, intake: LimitedCopy) -> tuple[ZipEntry, int]:
    if position + _ENTRY.size > len(data):
        raise intake.refusal("is damaged: its directory breaks off")
    fields = _ENTRY.unpack_from(data, position)
    (signature, _, _, flags, method, _, _, checksum, packed, size) = fields[:10]
    (name_length, extra_length, comment_length, disk, _, attributes, at) = fields[10:]
    name_at = position + _ENTRY.size
    end = name_at + name_length + extra_length + comment_length
    if signature != b"PK\1\2" or end > len(data):
        raise intake.refusal("is damaged: its directory breaks off")
    raw_name = data[name_at : name_at + name_length]
    label = f"entry '{shown(raw_name.decode('utf-8', 'replace'))}'"
    try:
        name = raw_name.decode()
    except UnicodeDecodeError:
        raise intake.refusal(f"{label} has a name that is not UTF-8; pack it with another program") from None
    if _ABSENT in (packed, size, at):
        raise intake.refusal(f"{label} is larger than a library may be")
    if flags & _ENCRYPTED:
        raise intake.refusal(f"{label} is encrypted; unpack the archive and add the folder")
    if disk:
        raise intake.refusal(f"{label} is in another part of the archive")
    is_folder = name.endswith("/")
    # Only archives from Unix have a mode; what others have there is no reason to trust them more.
    kind = stat.S_IFMT(attributes >> 16)
    if kind == stat.S_IFLNK:
        raise intake.refusal(f"{label} is a symbolic link; unpack the archive and add the folder")
    if kind not in (0, stat.S_IFDIR if is_folder else stat.S_IFREG):
        raise intake.refusal(f"{label} is neither a file nor a folder")
    entry = ZipEntry(
        path=name,
        raw_name=raw_name,
        is_folder=is_folder,
        flags=flags,
        method=method,
        checksum=checksum,
        packed=packed,
        size=size,
        at=at,
    )
    return entry, end


def _check_names(entries: Sequence[ZipEntry], intake: LimitedCopy) -> None:
    """Every path stays inside, and no two are the same file on any file system."""
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for entry in entries:
        path = entry.path.removesuffix("/")
        if problem := path_problem(path):
            raise intake.refusal(f"entry '{shown(entry.path)}' {problem}")
        key = unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())
        if not entry.is_folder:
            if key in files:
                raise intake.refusal(
                    f"entry '{shown(path)}' is there twice, or differs from another one only in case"
                )
            files[key] = path
        ancestors = key.split("/")
        for depth in range(1, len(ancestors) + entry.is_folder):
            folders["/".join(ancestors[:depth])] = path
    for key, path in files.items():
        if key in folders:
            raise intake.refusal(f"entry '{shown(path)}' is both a file and a folder")


def _places(
    file: BinaryIO, entries: Sequence[ZipEntry], directory_at: int, intake: LimitedCopy
) -> dict[int, int]:
    """Where the content of each entry begins, by where the entry does. No two may overlap."""
    places = {}
    ordered = sorted(entries, key=lambda entry: entry.at)
    bounds = [*(entry.at for entry in ordered[1:]), directory_at]
    for entry, bound in zip(ordered, bounds, strict=False):
        begin = _content_at(file, entry, intake)
        if begin + entry.packed > bound:
            raise intake.refusal(f"entry '{shown(entry.path)}' overlaps with another one")
        places[entry.at] = begin
    return places


def _content_at(file: BinaryIO, entry: ZipEntry, intake: LimitedCopy) -> int:
    """Where the content of an entry begins, whose own header must say what the directory says."""
    label = f"entry '{shown(entry.path)}'"
    file.seek(entry.at)
    header = file.read(_LOCAL.size)
    if len(header) < _LOCAL.size or header[:4] != b"PK\3\4":
        raise intake.refusal(f"{label} is not where the directory says")
    fields: tuple[int, ...] = _LOCAL.unpack(header)
    (_, _, flags, method, _, _, checksum, packed, size, name_length, extra_length) = fields
    name = file.read(name_length)
    if size == packed == _ABSENT:
        size, packed = _long_sizes(file.read(extra_length))
    same = (name, method, flags & _ENCRYPTED) == (entry.raw_name, entry.method, entry.flags & _ENCRYPTED)
    if not flags & _SIZES_FOLLOW:
        same = same and (checksum, packed, size) == (entry.checksum, entry.packed, entry.size)
    if not same:
        raise intake.refusal(f"{label} says something else about itself than the directory does")
    return entry.at + _LOCAL.size + name_length + extra_length


def _long_sizes(extra: bytes) -> tuple[int, int]:
    """The sizes that a writer who did not know them beforehand put where there is room for any."""
    if len(extra) >= 20 and extra[:4] == b"\1\0\x10\0":
        size, packed = struct.unpack_from("<2Q", extra, 4)
        return size, packed
    return _ABSENT, _ABSENT


def _common_top(entries: Sequence[ZipEntry]) -> str:
    """The folder that everything is in, as in archives of a repository; nothing if there is none."""
    paths = [entry.path for entry in entries if not is_junk_file(entry.path.rpartition("/")[2])]
    tops = {path.partition("/")[0] for path in paths}
    if len(tops) != 1 or not all("/" in path for path in paths):
        return ""
    top = tops.pop()
    # A hidden folder is no wrapping: what is in .claude is read because it is there.
    return "" if top.startswith(".") else f"{top}/"


def _is_no_bomb(entry: ZipEntry, intake: LimitedCopy) -> bool:
    if entry.size > _SMALL and entry.size > _RATIO * entry.packed:
        raise intake.refusal(
            f"entry '{shown(entry.path)}' grows to {entry.size:,} bytes from {entry.packed:,}, as bombs do"
        )
    return True


def _content(file: BinaryIO, entry: ZipEntry, begin: int, intake: LimitedCopy) -> Iterator[bytes]:
    """The content of an entry, never more of it than the entry says, and checked at its end."""
    label = f"entry '{shown(entry.path)}'"
    if entry.method not in (_STORED, _DEFLATED):
        raise intake.refusal(f"{label} is compressed in a way that is not read; pack it with 'deflate'")
    size = checksum = 0
    pieces = _stored if entry.method == _STORED else _inflated
    try:
        for piece in pieces(file, begin, entry):
            size += len(piece)
            checksum = zlib.crc32(piece, checksum)
            if size > entry.size:
                break
            yield piece
    except zlib.error:
        raise intake.refusal(f"{label} is damaged; fetch the archive again") from None
    if size != entry.size:
        raise intake.refusal(f"{label} has another size than it says")
    if checksum != entry.checksum:
        raise intake.refusal(f"{label} is damaged: its checksum is wrong; fetch the archive again")


def _stored(file: BinaryIO, begin: int, entry: ZipEntry) -> Iterator[bytes]:
    file.seek(begin)
    left = entry.packed
    while left and (piece := file.read(min(_PIECE, left))):
        left -= len(piece)
        yield piece


def _inflated(file: BinaryIO, begin: int, entry: ZipEntry) -> Iterator[bytes]:
    """What a compressed entry unpacks to. Raises `zlib.error` unless it ends where the entry does."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    for piece in _stored(file, begin, entry):
        if inflater.eof:
            raise zlib.error("more after the end")
        rest = piece
        while rest and not inflater.eof:
            # As much at a time as was read: what a piece grows to is never in memory all at once.
            yield inflater.decompress(rest, _PIECE)
            rest = inflater.unconsumed_tail
    while not inflater.eof:
        if not (last := inflater.decompress(inflater.unconsumed_tail, _PIECE)):
            break
        yield last
    if not inflater.eof or inflater.unused_data:
        raise zlib.error("no end, or more after it")
