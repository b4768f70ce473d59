"""What the files of libraries said when they were last read, so that a start need not parse them again."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct

from dittybag import __version__
from dittybag.library.safe_folder import Stamp

#: A larger one would take longer to read than it saves.
_MAX_BYTES: Final = 256 * 1024 * 1024


class CacheEntry(Struct, frozen=True, array_like=True):
    """What is kept of one library."""

    #: The files it was read from.
    stamps: dict[str, Stamp]
    #: Decoded when somebody asks for it.
    files: Raw


class _Contents(Struct, frozen=True, array_like=True):
    version: str
    libraries: dict[str, CacheEntry]


class ParseCache:
    """One file, rewritten as a whole. It may vanish or be damaged at any time: then it is empty."""

    def __init__(self, home: str, directories: Sequence[str]) -> None:
        name = f"libraries-{zlib.crc32(os.fsencode(os.pathsep.join(directories))):08x}.cache"
        self._path = os.path.join(home, "cache", name)

    def load(self) -> dict[str, CacheEntry]:
        """What is known, by the folder's path."""
        try:
            with open(self._path, "rb") as file:
                content = file.read(_MAX_BYTES)
            if zlib.crc32(content[4:]) != int.from_bytes(content[:4], "big"):
                return {}
            contents = msgspec.msgpack.decode(memoryview(content)[4:], type=_Contents)
        except (OSError, msgspec.MsgspecError):
            return {}
        # Another version may read the same files differently.
        return contents.libraries if contents.version == __version__ else {}

    def save(self, libraries: Mapping[str, CacheEntry]) -> None:
        """Keep this for the next start; if that is not possible, the next start takes longer."""
        content = msgspec.msgpack.encode(_Contents(__version__, dict(libraries)))
        if len(content) + 4 > _MAX_BYTES:
            return
        beside = f"{self._path}.{os.getpid()}"
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            try:
                with open(beside, "wb") as file:
                    file.write(zlib.crc32(content).to_bytes(4, "big"))
                    file.write(content)
                os.replace(beside, self._path)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(beside)
