"""Reader of export folders, whose files people may have added, edited and merged."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from dittybag.domain.changes import Change
from dittybag.domain.errors import Invalid, Problem, SourceFailed
from dittybag.domain.projects import Project
from dittybag.domain.prompts import CONTENT_BYTES, Prompt
from dittybag.domain.resources import CONTENT_BYTES as RESOURCE_BYTES
from dittybag.domain.resources import DEFAULT_MIME_TYPE, Resource
from dittybag.domain.tasks import NOTES_LENGTH, Task
from dittybag.exchange.export_records import (
    ProjectRecord,
    PromptRecord,
    RawChangeRecord,
    ResourceRecord,
    TaskRecord,
    to_change,
    to_project,
    to_prompt,
    to_resource,
    to_task,
)
from dittybag.exchange.folder_layout import (
    CHANGES,
    CONTENT,
    CONTENTS,
    MARKER,
    PROJECT,
    PROJECTS,
    PROMPTS,
    RESOURCE,
    RESOURCES,
    TASKS,
    MarkerFields,
)
from dittybag.exchange.folder_tree import FolderTree
from dittybag.exchange.import_sources import SOURCE_BYTES, FileSource, SourceEntry
from dittybag.exchange.json_file import FORMAT, VERSION
from dittybag.exchange.record_front_matter import FIELDS_BYTES, parse_fields, split_front_matter

T = TypeVar("T")

#: Maximum size of all text files of a folder together; they are kept in memory.
_TEXT_BYTES: Final = 512 * 1024 * 1024
#: Maximum length of a line of the log. It contains an entity, in which every character may be escaped.
_LINE_BYTES: Final = 32 * 1024 * 1024
#: Sorts entities without a number last.
_UNNUMBERED: Final = 2**63


def is_export_folder(folder: str) -> bool:
    """Return whether a folder has the marker file of an export."""
    return os.path.isfile(os.path.join(folder, MARKER))  # noqa: PTH113, PTH118


class FolderSource(FileSource):
    """The content of a folder that was written by `FolderWriter`."""

    is_export = True

    def __init__(self, folder: str) -> None:
        """Raises `SourceFailed` if the folder is not a valid export."""
        super().__init__()
        self._folder = folder
        try:
            self._tree = FolderTree(folder)
            marker = parse_fields(self._tree.read(MARKER, FIELDS_BYTES).decode(), MarkerFields)
        except OSError as error:
            raise SourceFailed(folder, (error.strerror or "unknown reason").lower()) from error
        except (Invalid, UnicodeDecodeError) as error:
            raise SourceFailed(f"{folder}/{MARKER}", str(error)) from error
        if marker.format != FORMAT or marker.version != VERSION:
            problem = f"format '{marker.format[:60]}' version {marker.version} is not supported"
            raise SourceFailed(folder, f"{problem}; this Dittybag reads '{FORMAT}' version {VERSION}")
        self.has_history = "changes.jsonl" in self._tree.files("history")
        self._bytes_left = SOURCE_BYTES
        self._projects: list[SourceEntry[Project]] = []
        self._prompts: list[SourceEntry[Prompt]] = []
        self._resource_records: list[SourceEntry[tuple[str, ResourceRecord, int]]] = []
        self._tasks: list[SourceEntry[Task]] = []
        self._read_all()

    def _read_all(self) -> None:
        self._bytes_left = _TEXT_BYTES
        for name in self._tree.folders(PROJECTS):
            self._read_project(f"{PROJECTS}/{name}", name)
        self._projects.sort(key=_order_of_project)
        self._prompts.sort(key=_order_of_prompt)
        self._resource_records.sort(key=_order_of_resource)
        for name in self._tree.files(TASKS):
            if name.endswith(".md"):
                self._tasks.append(self._try_read(f"{TASKS}/{name}", self._task))
        self._tasks.sort(key=_order_of_task)

    def _read_project(self, folder: str, name: str) -> None:
        # A temporary id for a project file without an id.
        number = -1 - len(self._projects)

        def read(path: str) -> Project:
            record = parse_fields(self._text(path, FIELDS_BYTES), ProjectRecord)
            project = to_project(record)
            return replace(project, id=project.id or number, name=project.name or name)

        if PROJECT in self._tree.files(folder):
            found = self._try_read(f"{folder}/{PROJECT}", read)
        else:
            found = folder, Project(id=number, name=name, created_at=0, updated_at=0)
        self._projects.append(found)
        project = found[1].id if isinstance(found[1], Project) else number
        for file in self._tree.files(f"{folder}/{PROMPTS}"):
            if file.endswith(".md"):
                path = f"{folder}/{PROMPTS}/{file}"
                self._prompts.append(self._try_read(path, lambda path: self._prompt(path, project)))
        for inner in self._tree.folders(f"{folder}/{RESOURCES}"):
            path = f"{folder}/{RESOURCES}/{inner}"
            self._resource_records.append(
                self._try_read(path, lambda path: self._resource_record(path, project))
            )

    def _try_read(self, path: str, read: Callable[[str], T]) -> SourceEntry[T]:
        try:
            return path, read(path)
        except Invalid as error:
            return path, error.problems[0]
        except OSError as error:
            return path, Problem("", (error.strerror or "it cannot be read").lower())

    def _text(self, path: str, max_bytes: int) -> str:
        """Return the text of a file. Raises `Invalid`, `SourceFailed` and `OSError`."""
        content = self._tree.read(path, max_bytes)
        self._bytes_left -= len(content)
        if self._bytes_left < 0:
            raise SourceFailed(
                self._folder, "its text files are larger than 512 MiB in total; export to a JSON file instead"
            )
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise Invalid([Problem("", "it is not UTF-8")]) from error

    def _prompt(self, path: str, project: int) -> Prompt:
        head, body = split_front_matter(self._text(path, CONTENT_BYTES + FIELDS_BYTES))
        record = parse_fields(head, PromptRecord)
        name = record.name or path.rpartition("/")[2].removesuffix(".md")
        return to_prompt(replace(record, name=name, content=body), project)

    def _task(self, path: str) -> Task:
        head, body = split_front_matter(self._text(path, NOTES_LENGTH * 4 + FIELDS_BYTES))
        return to_task(replace(parse_fields(head, TaskRecord), notes=body or None))

    def _resource_record(self, path: str, project: int) -> tuple[str, ResourceRecord, int]:
        contents = [name for name in self._tree.files(path) if name.startswith(CONTENT)]
        if len(contents) != 1:
            problem = f"the folder must contain exactly one {CONTENT}* file, not {len(contents)}"
            raise Invalid([Problem("content", problem)])
        record = parse_fields(self._text(f"{path}/{RESOURCE}", FIELDS_BYTES), ResourceRecord)
        name = record.name or path.rpartition("/")[2]
        record = replace(record, name=name, mime_type=record.mime_type or DEFAULT_MIME_TYPE, text="")
        return f"{path}/{contents[0]}", record, project

    def close(self) -> None:
        self._tree.__exit__(None, None, None)

    # Methods of `FileSource`

    def projects(self) -> Iterator[SourceEntry[Project]]:
        return iter(self._projects)

    def prompts(self) -> Iterator[SourceEntry[Prompt]]:
        return iter(self._prompts)

    def tasks(self) -> Iterator[SourceEntry[Task]]:
        return iter(self._tasks)

    def resources(self) -> Iterator[SourceEntry[tuple[Resource, bytes]]]:
        for location, listed in self._resource_records:
            if isinstance(listed, Problem):
                yield location, listed
                continue
            path, record, project = listed

            def read(
                path: str, record: ResourceRecord = record, project: int = project
            ) -> tuple[Resource, bytes]:
                content = self._tree.read(path, RESOURCE_BYTES)
                resource, _ = to_resource(record, project)
                return replace(resource, size=len(content)), content

            yield self._try_read(path, read)

    def contents(self) -> Iterator[SourceEntry[bytes]]:
        for folder in self._tree.folders(CONTENTS):
            for name in self._tree.files(f"{CONTENTS}/{folder}"):
                path = f"{CONTENTS}/{folder}/{name}"
                yield self._try_read(path, lambda path: self._tree.read(path, RESOURCE_BYTES))

    def changes(self) -> Iterator[SourceEntry[Change]]:
        decoder = msgspec.json.Decoder(RawChangeRecord)
        for number, line in enumerate(self._tree.lines(CHANGES, _LINE_BYTES), 1):
            location = f"{CHANGES} line {number}"
            try:
                yield location, to_change(decoder.decode(line))
            except (msgspec.DecodeError, RecursionError) as error:
                yield location, Problem("", str(error))


def _order_of_project(entry: SourceEntry[Project]) -> tuple[int, int, str]:
    location, project = entry
    return (
        (0, 0, location)
        if isinstance(project, Problem)
        else (project.id if project.id > 0 else _UNNUMBERED, 0, location)
    )


def _order_of_prompt(entry: SourceEntry[Prompt]) -> tuple[int, int, str]:
    location, prompt = entry
    return (
        (0, 0, location)
        if isinstance(prompt, Problem)
        else (prompt.number or _UNNUMBERED, prompt.created_at, location)
    )


def _order_of_resource(entry: SourceEntry[tuple[str, ResourceRecord, int]]) -> tuple[int, str, str]:
    location, listed = entry
    return (
        (0, "", location)
        if isinstance(listed, Problem)
        else (listed[1].number or _UNNUMBERED, listed[1].created_at, location)
    )


def _order_of_task(entry: SourceEntry[Task]) -> tuple[int, int, str]:
    location, task = entry
    return (
        (0, 0, location) if isinstance(task, Problem) else (task.id or _UNNUMBERED, task.created_at, location)
    )
