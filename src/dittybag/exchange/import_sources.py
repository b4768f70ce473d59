"""The base class of import sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind
from dittybag.domain.errors import Problem
from dittybag.domain.imports import RenamedEntity
from dittybag.domain.prompts import Argument

T = TypeVar("T")
E = TypeVar("E", bound=Entity)

#: Maximum size of a source file in bytes.
SOURCE_BYTES: Final = 2 * 1024**3
TOO_LARGE: Final = f"it is larger than {SOURCE_BYTES // 1024**3} GiB"


class SourceEntity(Struct, frozen=True):
    """An entity of a source."""

    entity: Any
    #: The content of a resource, whose hash and size are not set.
    content: bytes = b""


#: A location in a source, and what is there or the problem with it.
SourceEntry: TypeAlias = tuple[str, T | Problem]


class FileSource:
    """The content of a file or folder to import. Each method can be called repeatedly.

    The project of a prompt or resource is an id within this source; 0 if it has none. Names, titles, ids and
    times that the source does not contain are empty or 0.
    """

    #: Whether it is a Dittybag export, with the ids, numbers and times of the exported workspace.
    is_export = False

    def __init__(self) -> None:
        self._renamed: dict[str, RenamedEntity] = {}
        self._notes: dict[str, None] = {}
        #: Arguments for prompts that declare none, by location and name.
        self.found_arguments: dict[tuple[str, str], tuple[Argument, ...]] = {}
        #: How many items each section such as `prompts` has, if that is known before they are read.
        self.totals: dict[str, int] = {}

    def entities(self, kind: Kind) -> Iterable[SourceEntry[SourceEntity]]:
        """The entities of a kind in the order of creation. Projects must be read first."""
        return ()

    def close(self) -> None:
        """Close the files."""

    @property
    def renamed(self) -> list[RenamedEntity]:
        """The names that were adjusted to the rules of Dittybag."""
        return list(self._renamed.values())

    @property
    def notes(self) -> list[str]:
        """Other adjustments, as sentences for the import report."""
        return list(self._notes)

    def add_note(self, text: str) -> None:
        self._notes[text] = None

    def record_rename(self, kind: str, location: str, old: str, new: str) -> str:
        """Record an adjusted name, if `new` differs from `old`. Returns `new`."""
        if old != new:
            self._renamed[location] = RenamedEntity(kind, old, new)
        return new


def entity_of(struct: type[E], **fields: Any) -> E:
    """Return an entity with these fields. Required fields that are not given are empty or 0."""
    return struct(**{**_EMPTY_FIELDS[struct], **fields})


_EMPTY_FIELDS: Final[Mapping[type, dict[str, Any]]] = {
    described.struct: {
        field.name: field.type() for field in msgspec.structs.fields(described.struct) if field.required
    }
    for described in ENTITY_TYPES.values()
}
