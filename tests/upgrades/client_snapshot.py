"""The files of a home folder as JSON, and the folder again at another path.

Files that were written for clients contain absolute paths, positions of what follows them, and names made
from digests of paths. A folder is therefore restored at a path of the same length.
"""

from __future__ import annotations

import base64
import re
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

#: The length of every root folder: longer than the temporary folders of tests.
ROOT_LENGTH: Final = 150
_ROOT: Final = "@ROOT@"
#: The first digits of the digest of a path, or of a path and the name of a section on two lines.
_DIGEST: Final = re.compile(r"@DIGEST:(\d+):([^@|]*)(?:\|([^@]*))?@")
_DIGITS: Final = re.compile(r"\b[0-9a-f]{24,64}\b")


class FileSnapshot(Struct, frozen=True, omit_defaults=True):
    """The content of a file."""

    text: str = ""
    #: For a file that is not UTF-8, in base64.
    data: str = ""


#: The files of a folder, by relative path.
Snapshot = dict[str, FileSnapshot]


def create_root(parent: Path) -> Path:
    """Create a folder whose path has the length of all roots."""
    missing = ROOT_LENGTH - len(str(parent)) - 1
    assert missing > 0, f"the path of the temporary folder is too long: {parent}"
    root = parent / ("r" * missing)
    root.mkdir()
    return root


def take_snapshot(
    root: Path, folders: tuple[str, ...], *, ignored: str, sections: tuple[str, ...] = ()
) -> Snapshot:
    """Read the files in these folders, except those whose path matches a pattern.

    `sections`: the names of sections in the files.
    """
    known = {
        _digest(path, section): (path.relative_to(root), section)
        for path in root.rglob("*")
        for section in (None, "", *sections)
    }

    def portable_digest(found: re.Match[str]) -> str:
        for digest, (path, section) in known.items():
            if digest.startswith(found[0]):
                return f"@DIGEST:{len(found[0])}:{path}{'' if section is None else '|' + section}@"
        return found[0]

    def portable(text: str) -> str:
        return _DIGITS.sub(portable_digest, text).replace(str(root), _ROOT)

    files = [path for folder in folders for path in sorted((root / folder).rglob("*")) if path.is_file()]
    found: Snapshot = {}
    for path in files:
        name, data = str(path.relative_to(root)), path.read_bytes()
        if re.search(ignored, name):
            continue
        try:
            found[portable(name)] = FileSnapshot(text=portable(data.decode()))
        except UnicodeDecodeError:
            found[portable(name)] = FileSnapshot(data=base64.b64encode(data).decode())
    return found


def restore_snapshot(root: Path, snapshot: Snapshot) -> None:
    """Write the files below a root."""

    def local(text: str) -> str:
        digests = _DIGEST.sub(lambda found: _digest(root / found[2], found[3])[: int(found[1])], text)
        return digests.replace(_ROOT, str(root))

    for name, file in snapshot.items():
        path = root / local(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(file.data) if file.data else local(file.text).encode())


def _digest(path: Path, section: str | None) -> str:
    return sha256(str(path).encode() + (b"" if section is None else b"\n" + section.encode())).hexdigest()
