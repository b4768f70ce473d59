"""A folder of Agent Skills that an export writes, and updates as long as nobody has edited the files."""

from __future__ import annotations

import os
from contextlib import closing
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct

from dittybag.domain.errors import Conflict, Invalid
from dittybag.domain.skills import FILE_BYTES
from dittybag.exchange.folder_tree import FolderTree

MARKER: Final = ".dittybag-skills.json"
_MARKER_BYTES: Final = 64 * 1024 * 1024
_VERSION: Final = 1


class SkillsMarker(Struct, frozen=True, kw_only=True):
    """The content of the marker file."""

    version: int
    #: The SHA-256 of each file as it was written, by path.
    files: dict[str, str]


class SkillsFolder:
    """Writes the files of skills. No link below the folder is followed."""

    def __init__(self, folder: str) -> None:
        """Raises `Conflict` if the folder has anything but an export of skills, and `OSError`."""
        self._digests = _read_marker(folder)
        os.makedirs(folder, exist_ok=True)  # all other paths are relative to descriptors
        self._tree = FolderTree(folder)
        self._seen: set[str] = set()
        #: The number of files that were created, changed or deleted, and the paths of edited files.
        self.changed = 0
        self.kept: list[str] = []
        self._write_marker()

    def write(self, path: str, content: bytes) -> None:
        """Write a file unless somebody has edited it. Raises `OSError`."""
        self._seen.add(path)
        digest, found = sha256(content).hexdigest(), self._digest(path)
        if found not in (None, digest, self._digests.get(path)):
            self.kept.append(path)
            return
        self.changed += self._tree.write(path, content)
        self._digests[path] = digest

    def finish(self) -> None:
        """Delete the files of earlier exports that were not written this time. Raises `OSError`."""
        for path in sorted(self._digests.keys() - self._seen):
            found = self._digest(path)
            if found not in (None, self._digests[path]):
                self.kept.append(path)
                continue
            del self._digests[path]
            if found is not None:
                self._tree.remove(path)
                self.changed += 1

    def close(self) -> None:
        """Note what was written. What a killed process has written counts as edited."""
        with closing(self._tree):
            self._write_marker()

    def _digest(self, path: str) -> str | None:
        """Return the digest of a file; `None` without one, and an empty text if it cannot be ours."""
        try:
            return sha256(self._tree.read(path, FILE_BYTES)).hexdigest()
        except FileNotFoundError:
            return None
        except (Invalid, OSError):
            return ""

    def _write_marker(self) -> None:
        marker = SkillsMarker(version=_VERSION, files=dict(sorted(self._digests.items())))
        self._tree.write(MARKER, msgspec.json.format(msgspec.json.encode(marker), indent=1) + b"\n")


def _read_marker(folder: str) -> dict[str, str]:
    try:
        with closing(FolderTree(folder)) as tree:
            marker = msgspec.json.decode(tree.read(MARKER, _MARKER_BYTES), type=SkillsMarker)
    except FileNotFoundError:
        if os.path.isdir(folder) and os.listdir(folder):
            raise Conflict(f"{folder} is not empty and is not an export of skills") from None
        return {}
    except NotADirectoryError as error:
        raise Conflict(f"{folder} is a file, not a folder") from error
    except (Invalid, msgspec.DecodeError) as error:
        raise Conflict(f"{folder}/{MARKER} is not valid: {error}") from error
    if marker.version != _VERSION or not all(map(_is_inside, marker.files)):
        raise Conflict(f"{folder}/{MARKER} is not one that this version of Dittybag writes")
    return marker.files


def _is_inside(path: str) -> bool:
    """Whether a path leads to a file below the folder. The marker may come with a repository."""
    return "\0" not in path and not {"", ".", ".."} & set(path.split("/"))
