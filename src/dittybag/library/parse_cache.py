"""The parse cache: parsed library files on disk, so that a start does not parse them again."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct

from dittybag import __version__, files
from dittybag.library.safe_folder import Stamp

#: A larger cache would take longer to read than it saves.
_MAX_BYTES: Final = 256 * 1024 * 1024
#: Another version may parse the same files differently. The number changes with what is parsed from a file.
_VERSION: Final = f"{__version__}/2"


class CacheEntry(Struct, frozen=True, array_like=True):
    """The parsed files of one library."""

    #: The stamps of the parsed files.
    stamps: dict[str, Stamp]
    #: Decoded on demand.
    files: Raw


class _CacheContents(Struct, frozen=True, array_like=True):
    version: str
    libraries: dict[str, CacheEntry]


class ParseCache:
    """One file that is always rewritten completely. A missing or damaged cache is treated as empty."""

    def __init__(self, home: str, directories: Sequence[str]) -> None:
        name = f"libraries-{zlib.crc32(os.fsencode(os.pathsep.join(directories))):08x}.cache"
        self._path = os.path.join(home, "cache", name)

    def load(self) -> dict[str, CacheEntry]:
        """The cached libraries by folder path."""
        try:
            content = files.read(self._path, _MAX_BYTES)
            if zlib.crc32(content[4:]) != int.from_bytes(content[:4], "big"):
                return {}
            contents = msgspec.msgpack.decode(memoryview(content)[4:], type=_CacheContents)
        except (OSError, msgspec.MsgspecError):
            return {}
        return contents.libraries if contents.version == _VERSION else {}

    def save(self, libraries: Mapping[str, CacheEntry]) -> None:
        """Write the cache. Errors are ignored: the next start is only slower."""
        content = msgspec.msgpack.encode(_CacheContents(_VERSION, dict(libraries)))
        if len(content) + 4 > _MAX_BYTES:
            return
        with contextlib.suppress(OSError):
            files.make_folders(os.path.dirname(os.path.abspath(self._path)))
            with files.atomic_write(self._path, durable=False) as file:
                file.write(zlib.crc32(content).to_bytes(4, "big"))
                file.write(content)
