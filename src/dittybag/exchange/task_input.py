"""Bounded reading of files with the tasks of other programs."""

from __future__ import annotations

import os
import re
from typing import Any, Final, TypeVar

import msgspec

from dittybag import files
from dittybag.domain.errors import SourceFailed

T = TypeVar("T")

#: Maximum size of a source in bytes, of one file or of all files of a folder.
MAX_BYTES: Final = 50 * 1024**2
MAX_TASKS: Final = 10_000
#: More than a file of 10,000 tasks has. A value takes much more memory than its few bytes in a file.
_MAX_OBJECTS: Final = 2_000_000
_MAX_VALUES: Final = 5_000_000
#: The start of an object; in texts, it is rare.
_OBJECT: Final = re.compile(rb'\{\s*["}]')

_BOM: Final = b"\xef\xbb\xbf"
_UTF16_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")
_SPACES: Final = b" \t\r\n"


class TaskInput:
    """The content of a file: valid UTF-8 of a limited size."""

    def __init__(self, name: str, data: bytes) -> None:
        """`name`: of the file, for messages. Raises `SourceFailed`."""
        self.name = name
        if len(data) > MAX_BYTES:
            raise SourceFailed(name, too_large())
        if max(data.count(b","), data.count(b";")) > _MAX_VALUES:
            raise SourceFailed(name, f"it has more than {_MAX_VALUES:,} values")
        if data.startswith(_UTF16_BOMS):
            raise SourceFailed(name, "it is UTF-16; save it as UTF-8")
        plain = data.removeprefix(_BOM)
        #: Without white space around it.
        self.data = plain.strip(_SPACES)
        try:
            self.text = plain.decode()
        except UnicodeDecodeError as error:
            raise SourceFailed(name, f"it is not UTF-8 (byte {error.start + 1})") from error

    @property
    def is_json(self) -> bool:
        return self.data[:1] in (b"{", b"[")

    def decode(self, type: type[T]) -> T:
        """Decode JSON. Raises `SourceFailed`."""
        decoded: T = self._decode(self.data, type, "")
        return decoded

    def items(self, type: type[T]) -> list[T]:
        """Decode a JSON array, an object, or objects that are each on a line. Raises `SourceFailed`."""
        if self.data.startswith(b"["):
            found: list[T] = self._decode(self.data, list[type], "")  # type: ignore[valid-type]  # a parameter
            self.require_count(len(found))
            return found
        if self.is_object:
            return [self.decode(type)]
        lines = self.data.split(b"\n")
        self.require_count(sum(bool(line.strip(_SPACES)) for line in lines))
        return [
            self._decode(line, type, f"line {number}: ")
            for number, line in enumerate(lines, 1)
            if line.strip(_SPACES)
        ]

    @property
    def is_object(self) -> bool:
        """Whether it is one JSON object, and not several lines of JSON."""
        if not self.data.startswith(b"{"):
            return False
        try:
            msgspec.json.decode(self.data, type=msgspec.Raw)
        except (msgspec.DecodeError, RecursionError):
            return False
        return True

    def require_count(self, count: int) -> None:
        """Raise `SourceFailed` if these are too many tasks."""
        if count > MAX_TASKS:
            raise SourceFailed(self.name, too_many())

    def _decode(self, data: bytes, type: Any, where: str) -> Any:
        if data.count(b"{") > _MAX_OBJECTS and sum(1 for _ in _OBJECT.finditer(data)) > _MAX_OBJECTS:
            raise SourceFailed(self.name, f"it has more than {_MAX_OBJECTS:,} objects")
        try:
            return msgspec.json.decode(data, type=type)
        except msgspec.ValidationError as error:
            raise SourceFailed(self.name, f"{where}{error}") from error
        except msgspec.DecodeError as error:
            raise SourceFailed(self.name, f"{where}it is not valid JSON ({error})") from error
        except RecursionError as error:
            raise SourceFailed(self.name, f"{where}it is nested too deeply") from error


def too_large() -> str:
    return f"it is larger than {MAX_BYTES // 1024**2} MB"


def too_many() -> str:
    return f"it has more than {MAX_TASKS:,} tasks"


def read_input(path: str) -> TaskInput:
    """Read a file. Raises `SourceFailed`."""
    try:
        data = files.read(path, MAX_BYTES, follow_links=True)
    except files.FileTooLarge as error:
        raise SourceFailed(path, too_large()) from error
    except files.NotRegularFile as error:
        raise SourceFailed(path, "it is neither a file nor a folder") from error
    except OSError as error:
        raise SourceFailed(path, files.describe(error)) from error
    return TaskInput(os.path.basename(path), data)
