"""Exports as one JSON file with one entity per line. Equal workspaces give equal bytes."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from dittybag.domain.changes import Change
from dittybag.domain.errors import Invalid, Problem, SourceFailed
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.exchange.export_records import (
    ContentRecord,
    ProjectRecord,
    PromptRecord,
    RawChangeRecord,
    ResourceRecord,
    TaskRecord,
    change_record,
    decode_content,
    encode_content,
    project_record,
    prompt_record,
    resource_record,
    task_record,
    to_change,
    to_project,
    to_prompt,
    to_resource,
    to_task,
)
from dittybag.exchange.import_sources import SOURCE_BYTES, FileSource, SourceEntry

FORMAT: Final = "dittybag"
VERSION: Final = 1

R = TypeVar("R")
T = TypeVar("T")

_SECTIONS: Final = ("projects", "prompts", "resources", "tasks")
_HISTORY: Final = ("contents", "changes")


class JsonWriter:
    """Writes an export as JSON. Entities must arrive in the order of the sections."""

    def __init__(self, write: Callable[[bytes], Any], *, project: str | None, history: bool) -> None:
        """`project`: the exported project, `None` for the whole workspace."""
        self._write = write
        self._names: dict[int, str] = {}
        self._sections = list(_SECTIONS + (_HISTORY if history else ()))
        self._open: str | None = None
        self._empty = True
        self._encoder = msgspec.json.Encoder()
        scope = "" if project is None else f'"project":{self._encoder.encode(project).decode()},'
        write(f'{{"format":"{FORMAT}","version":{VERSION},{scope}'.encode())

    def project(self, project: Project) -> None:
        self._names[project.id] = project.name
        self._write_item("projects", project_record(project))

    def prompt(self, prompt: Prompt) -> None:
        self._write_item("prompts", prompt_record(prompt, self._names[prompt.project]))

    def resource(self, resource: Resource, content: bytes) -> None:
        self._write_item("resources", resource_record(resource, content, self._names[resource.project]))

    def task(self, task: Task) -> None:
        self._write_item("tasks", task_record(task))

    def content(self, sha256: str, content: bytes) -> None:
        self._write_item("contents", ContentRecord(**encode_content(content)))

    def change(self, change: Change) -> None:
        self._write_item("changes", change_record(change))

    def finish(self) -> None:
        """Complete the export."""
        while self._sections:
            self._begin_section(self._sections[0])
        self._end_section()
        self._write(b"\n}\n")

    def _write_item(self, section: str, item: Any) -> None:
        while self._open != section:
            self._begin_section(self._sections[0])
        self._write(b"\n" if self._empty else b",\n")
        self._empty = False
        self._write(self._encoder.encode(item))

    def _begin_section(self, section: str) -> None:
        self._end_section()
        self._sections.remove(section)
        self._write(f'{"" if self._open is None else ","}\n"{section}":['.encode())
        self._open = section
        self._empty = True

    def _end_section(self) -> None:
        if self._open is not None:
            self._write(b"]" if self._empty else b"\n]")


class _JsonExport(Struct, forbid_unknown_fields=True):
    """The whole file. The items of the sections are not decoded yet."""

    format: str
    version: int
    project: str | None = None
    projects: list[Raw] = []
    prompts: list[Raw] = []
    resources: list[Raw] = []
    tasks: list[Raw] = []
    contents: list[Raw] = []
    changes: list[Raw] | None = None


class _FormatHeader(Struct):
    """The fields that identify an export."""

    format: str
    version: int = 0


def is_export_file(path: str) -> bool:
    """Return whether a JSON file is a Dittybag export. Raises `SourceFailed`."""
    try:
        header = msgspec.json.decode(_map_file(path), type=_FormatHeader)
    except msgspec.ValidationError:
        return False
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SourceFailed(path, f"it is not valid JSON ({error})") from error
    return header.format == FORMAT


def _map_file(path: str) -> Any:
    """Map a file into memory. Raises `SourceFailed`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            size = os.fstat(descriptor).st_size
            if size > SOURCE_BYTES:
                raise SourceFailed(path, f"it is larger than {SOURCE_BYTES // 1024**3} GiB")
            return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) if size else b""
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SourceFailed(path, (error.strerror or "unknown reason").lower()) from error


class JsonSource(FileSource):
    """The content of a JSON export."""

    is_export = True

    def __init__(self, path: str) -> None:
        """Raises `SourceFailed` if the file is not a valid export."""
        super().__init__()
        try:
            export = msgspec.json.decode(_map_file(path), type=_JsonExport)
        except msgspec.ValidationError as error:
            raise SourceFailed(path, f"it is not a valid export: {error}") from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SourceFailed(path, f"it is not valid JSON ({error})") from error
        if export.format != FORMAT:
            raise SourceFailed(path, "it is not a Dittybag export")
        if export.version != VERSION:
            problem = (
                f"format version {export.version} is not supported; this Dittybag reads version {VERSION}"
            )
            raise SourceFailed(path, problem)
        self._export = export
        self.has_history = export.changes is not None
        self._ids: dict[str, int] = {}

    def projects(self) -> Iterator[SourceEntry[Project]]:
        self._ids = {DEFAULT_PROJECT: 0, "": 0}
        for location, found in _decode_section("projects", self._export.projects, ProjectRecord, to_project):
            project = found
            if isinstance(project, Project):
                # A temporary, unique id for a project without an id.
                project = project if project.id else replace(project, id=-len(self._ids))
                self._ids[project.name] = project.id
            yield location, project

    def prompts(self) -> Iterator[SourceEntry[Prompt]]:
        def read(record: PromptRecord) -> Prompt:
            return to_prompt(record, self._project(record.project))

        return _decode_section("prompts", self._export.prompts, PromptRecord, read)

    def resources(self) -> Iterator[SourceEntry[tuple[Resource, bytes]]]:
        def read(record: ResourceRecord) -> tuple[Resource, bytes]:
            return to_resource(record, self._project(record.project))

        return _decode_section("resources", self._export.resources, ResourceRecord, read)

    def tasks(self) -> Iterator[SourceEntry[Task]]:
        return _decode_section("tasks", self._export.tasks, TaskRecord, to_task)

    def contents(self) -> Iterator[SourceEntry[bytes]]:
        def read(record: ContentRecord) -> bytes:
            return decode_content(record.text, record.base64)

        return _decode_section("contents", self._export.contents, ContentRecord, read)

    def changes(self) -> Iterator[SourceEntry[Change]]:
        return _decode_section("changes", self._export.changes or [], RawChangeRecord, to_change)

    def _project(self, name: str) -> int:
        """Return the id of a project in this source. Raises `Invalid`."""
        if name not in self._ids:
            raise Invalid([Problem("project", f"project '{name[:100]}' is not listed in projects")])
        return self._ids[name]


def _decode_section(
    section: str, items: list[Raw], type: type[R], read: Callable[[R], T]
) -> Iterator[SourceEntry[T]]:
    decoder = msgspec.json.Decoder(type)
    for number, item in enumerate(items, 1):
        location = f"{section} {number}"
        try:
            yield location, read(decoder.decode(item))
        except (msgspec.DecodeError, UnicodeError) as error:
            yield location, Problem("", str(error))
        except RecursionError:
            yield location, Problem("", "too deeply nested")
        except Invalid as error:
            yield location, error.problems[0]
