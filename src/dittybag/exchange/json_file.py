"""Exports as one JSON file with one entity per line. Equal workspaces give equal bytes."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from dittybag import files
from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind, kind_of, project_of
from dittybag.domain.errors import SourceFailed
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.exchange.export_data import without_others
from dittybag.exchange.export_records import (
    RECORD_TYPES,
    decode_entry,
    named_project,
    to_entity,
    to_record,
)
from dittybag.exchange.import_sources import SOURCE_BYTES, TOO_LARGE, FileSource, SourceEntity, SourceEntry

FORMAT: Final = "dittybag"
VERSION: Final = 1

T = TypeVar("T")

_SECTIONS: Final = tuple(f"{kind}s" for kind in ENTITY_TYPES)


class JsonWriter:
    """Writes an export as JSON. Entities must arrive in the order of the sections."""

    def __init__(self, write: Callable[[bytes], Any], *, project: str | None) -> None:
        self.project = project
        self._write = write
        self._names: dict[int, str] = {}
        self._sections = iter(_SECTIONS)
        #: Empty before the first section, `None` after the last one.
        self._section: str | None = ""
        self._empty = True
        self._encoder = msgspec.json.Encoder()
        scope = "" if project is None else f'"project":{self._encoder.encode(project).decode()},'
        write(f'{{"format":"{FORMAT}","version":{VERSION},{scope}'.encode())

    def entity(self, entity: Entity, content: bytes | None = None) -> None:
        if isinstance(entity, Project):
            self._names[entity.id] = entity.name
        project = project_of(entity)
        record = to_record(entity, "" if project is None else self._names[project], content)
        self._write_item(f"{kind_of(entity)}s", record)

    def finish(self) -> None:
        while self._section is not None:
            self._next_section()
        self._write(b"\n}\n")

    def _write_item(self, section: str, item: Any) -> None:
        while self._section != section:
            self._next_section()
        self._write(b"\n" if self._empty else b",\n")
        self._empty = False
        self._write(self._encoder.encode(item))

    def _next_section(self) -> None:
        """End the current section and begin the next one, if there is one."""
        separator = ""
        if self._section:
            self._write(b"]" if self._empty else b"\n]")
            separator = ","
        self._section = next(self._sections, None)
        self._empty = True
        if self._section is not None:
            self._write(f'{separator}\n"{self._section}":['.encode())


class _JsonExport(Struct, forbid_unknown_fields=True):
    """The whole file. The items of the sections are not decoded yet."""

    format: str
    version: int
    project: str | None = None
    projects: list[Raw] = []
    prompts: list[Raw] = []
    resources: list[Raw] = []
    tasks: list[Raw] = []


class _FormatHeader(Struct):
    """The fields that identify an export."""

    format: str
    version: int = 0


def is_export_file(path: str) -> bool:
    """Return whether a JSON file is a Dittybag export. Raises `SourceFailed`."""
    try:
        return _decode_file(path, _FormatHeader).format == FORMAT
    except msgspec.ValidationError:
        return False


def _decode_file(path: str, type: type[T]) -> T:
    """Decode a JSON file. Raises `SourceFailed`, and `ValidationError` if it is JSON of another type."""
    try:
        return msgspec.json.decode(_map_file(path), type=type)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SourceFailed(path, f"it is not valid JSON ({error})") from error
    except OSError as error:
        raise SourceFailed(path, files.describe(error)) from error


def _map_file(path: str) -> Any:
    """Map a file into memory. Raises `SourceFailed` if it is too large, and `OSError`."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > SOURCE_BYTES:
            raise SourceFailed(path, TOO_LARGE)
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""


class JsonSource(FileSource):
    """The content of a JSON export."""

    is_export = True

    def __init__(self, path: str) -> None:
        """Raises `SourceFailed` if the file is not a valid export."""
        super().__init__()
        try:
            export = _decode_file(path, _JsonExport)
        except msgspec.ValidationError as error:
            raise SourceFailed(path, f"it is not a valid export: {error}") from error
        if export.format != FORMAT:
            raise SourceFailed(path, "it is not a Dittybag export")
        if export.version != VERSION:
            problem = f"format version {export.version} is not supported"
            raise SourceFailed(path, f"{problem}; this Dittybag reads version {VERSION}")
        self._export = export
        self.totals = {name: len(getattr(export, name)) for name in _SECTIONS}
        self._ids: dict[str, int] = {}
        self._last_project = 0

    def entities(self, kind: Kind) -> Iterator[SourceEntry[SourceEntity]]:
        decode = msgspec.json.Decoder(RECORD_TYPES[kind]).decode
        if kind == "project":
            self._ids = {DEFAULT_PROJECT: 0, "": 0}
        return _decode_section(
            f"{kind}s",
            getattr(self._export, f"{kind}s"),
            lambda item: self._to_entity(kind, decode(item)),
        )

    def _to_entity(self, kind: Kind, record: Any) -> SourceEntity:
        """Convert a record, with a temporary id for its project. Raises `Invalid`."""
        if kind == "project":
            self._last_project -= 1
            number = self._ids[record.name] = self._last_project
        else:
            number = named_project(kind, record, self._ids)
        return to_entity(kind, record, number)


def _decode_section(section: str, items: list[Raw], decode: Callable[[Raw], T]) -> Iterator[SourceEntry[T]]:
    return (decode_entry(f"{section} {number}", decode, item) for number, item in enumerate(items, 1))


# Selected entities


def export_selected(
    projects: Iterable[Project], entities: Sequence[tuple[Prompt | Resource | Task, bytes | None]]
) -> bytes:
    """Return the file. `projects`: those that the entities may belong to; each entity with its content.

    A task without its project in `projects` is no longer shared, and names only tasks that are selected too.
    """
    known = {project.id: project for project in projects}
    tasks = {entity.id for entity, _ in entities if isinstance(entity, Task)}
    selected = [
        (without_others(entity, known, tasks) if isinstance(entity, Task) else entity, content)
        for entity, content in entities
    ]
    used = {project_of(entity) for entity, _ in selected}
    parts: list[bytes] = []
    writer = JsonWriter(parts.append, project=None)
    for project in known.values():
        if project.id in used:
            writer.entity(project)
    for kind in ENTITY_TYPES:
        for entity, content in selected:
            if kind_of(entity) == kind:
                writer.entity(entity, content)
    writer.finish()
    return b"".join(parts)
