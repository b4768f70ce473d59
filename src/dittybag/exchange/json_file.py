"""A workspace or a project in one JSON file: one thing on a line, the same bytes for the same things."""

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
    ChangeLine,
    ContentRecord,
    ProjectRecord,
    PromptRecord,
    ResourceRecord,
    TaskRecord,
    change_of,
    change_record,
    project_of,
    project_record,
    prompt_of,
    prompt_record,
    read_content,
    resource_of,
    resource_record,
    task_of,
    task_record,
    written_content,
)
from dittybag.exchange.import_sources import SOURCE_BYTES, Found, Source

FORMAT: Final = "dittybag"
VERSION: Final = 1

R = TypeVar("R")
T = TypeVar("T")

_SECTIONS: Final = ("projects", "prompts", "resources", "tasks")
_HISTORY: Final = ("contents", "changes")


class JsonWriter:
    """Writes what it is given, in the order of the sections."""

    def __init__(self, write: Callable[[bytes], Any], *, project: str | None, history: bool) -> None:
        """`project`: the only one, if it is not the whole workspace."""
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
        self._item("projects", project_record(project))

    def prompt(self, prompt: Prompt) -> None:
        self._item("prompts", prompt_record(prompt, self._names[prompt.project]))

    def resource(self, resource: Resource, content: bytes) -> None:
        self._item("resources", resource_record(resource, content, self._names[resource.project]))

    def task(self, task: Task) -> None:
        self._item("tasks", task_record(task))

    def content(self, sha256: str, content: bytes) -> None:
        self._item("contents", ContentRecord(**written_content(content)))

    def change(self, change: Change) -> None:
        self._item("changes", change_record(change))

    def end(self) -> None:
        while self._sections:
            self._begin(self._sections[0])
        self._finish()
        self._write(b"\n}\n")

    def _item(self, section: str, item: Any) -> None:
        while self._open != section:
            self._begin(self._sections[0])
        self._write(b"\n" if self._empty else b",\n")
        self._empty = False
        self._write(self._encoder.encode(item))

    def _begin(self, section: str) -> None:
        self._finish()
        self._sections.remove(section)
        self._write(f'{"" if self._open is None else ","}\n"{section}":['.encode())
        self._open = section
        self._empty = True

    def _finish(self) -> None:
        if self._open is not None:
            self._write(b"]" if self._empty else b"\n]")


class _Document(Struct, forbid_unknown_fields=True):
    """The whole file; what is in the sections has not been looked at."""

    format: str
    version: int
    project: str | None = None
    projects: list[Raw] = []
    prompts: list[Raw] = []
    resources: list[Raw] = []
    tasks: list[Raw] = []
    contents: list[Raw] = []
    changes: list[Raw] | None = None


class _Head(Struct):
    format: str
    version: int = 0


def is_ours(path: str) -> bool:
    """Whether a JSON file says that it is an export of Dittybag's. Raises `SourceFailed`."""
    try:
        head = msgspec.json.decode(_mapped(path), type=_Head)
    except msgspec.ValidationError:
        return False
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SourceFailed(path, f"it is not valid JSON ({error})") from error
    return head.format == FORMAT


def _mapped(path: str) -> Any:
    """The bytes of a file, which stay on the disk. Raises `SourceFailed`."""
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


class JsonSource(Source):
    """What is in a file that `JsonWriter` or somebody else wrote."""

    own = True

    def __init__(self, path: str) -> None:
        """Raises `SourceFailed` if it is no export at all."""
        super().__init__()
        try:
            document = msgspec.json.decode(_mapped(path), type=_Document)
        except msgspec.ValidationError as error:
            raise SourceFailed(path, f"it is no export that can be understood: {error}") from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SourceFailed(path, f"it is not valid JSON ({error})") from error
        if document.format != FORMAT:
            raise SourceFailed(path, "it is not an export of Dittybag's")
        if document.version != VERSION:
            problem = f"version {document.version} of the format is not known here; it takes another Dittybag"
            raise SourceFailed(path, problem)
        self._document = document
        self.has_history = document.changes is not None
        self._ids: dict[str, int] = {}

    def projects(self) -> Iterator[Found[Project]]:
        self._ids = {DEFAULT_PROJECT: 0, "": 0}
        for place, found in _each("projects", self._document.projects, ProjectRecord, project_of):
            project = found
            if isinstance(project, Project):
                # One that has no number of its own gets one that no other has.
                project = project if project.id else replace(project, id=-len(self._ids))
                self._ids[project.name] = project.id
            yield place, project

    def prompts(self) -> Iterator[Found[Prompt]]:
        def read(record: PromptRecord) -> Prompt:
            return prompt_of(record, self._project(record.project))

        return _each("prompts", self._document.prompts, PromptRecord, read)

    def resources(self) -> Iterator[Found[tuple[Resource, bytes]]]:
        def read(record: ResourceRecord) -> tuple[Resource, bytes]:
            return resource_of(record, self._project(record.project))

        return _each("resources", self._document.resources, ResourceRecord, read)

    def tasks(self) -> Iterator[Found[Task]]:
        return _each("tasks", self._document.tasks, TaskRecord, task_of)

    def contents(self) -> Iterator[Found[bytes]]:
        def read(record: ContentRecord) -> bytes:
            return read_content(record.text, record.base64)

        return _each("contents", self._document.contents, ContentRecord, read)

    def changes(self) -> Iterator[Found[Change]]:
        return _each("changes", self._document.changes or [], ChangeLine, change_of)

    def _project(self, name: str) -> int:
        """Raises `Invalid`."""
        if name not in self._ids:
            raise Invalid([Problem("project", f"there is no project '{name[:100]}' among the projects")])
        return self._ids[name]


def _each(section: str, items: list[Raw], type: type[R], read: Callable[[R], T]) -> Iterator[Found[T]]:
    decoder = msgspec.json.Decoder(type)
    for number, item in enumerate(items, 1):
        place = f"{section} {number}"
        try:
            yield place, read(decoder.decode(item))
        except (msgspec.DecodeError, UnicodeError) as error:
            yield place, Problem("", str(error))
        except RecursionError:
            yield place, Problem("", "too deeply nested")
        except Invalid as error:
            yield place, error.problems[0]
