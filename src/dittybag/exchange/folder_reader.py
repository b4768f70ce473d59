"""Reads a folder of readable files, which people may have edited, added to and merged."""

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
    ChangeLine,
    ProjectRecord,
    PromptRecord,
    ResourceRecord,
    TaskRecord,
    change_of,
    project_of,
    prompt_of,
    resource_of,
    task_of,
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
from dittybag.exchange.folder_tree import Tree
from dittybag.exchange.import_sources import SOURCE_BYTES, Found, Source
from dittybag.exchange.json_file import FORMAT, VERSION
from dittybag.exchange.record_front_matter import HEAD_BYTES, fields, split

T = TypeVar("T")

#: All texts of a folder together, which are kept in memory.
_TEXT_BYTES: Final = 512 * 1024 * 1024
#: A line of the log has a thing in it, in which every character may be escaped.
_LINE_BYTES: Final = 32 * 1024 * 1024
_FAR: Final = 2**63


def is_ours(folder: str) -> bool:
    """Whether a folder says that it is an export of Dittybag's."""
    return os.path.isfile(os.path.join(folder, MARKER))  # noqa: PTH113, PTH118


class FolderSource(Source):
    """What is in a folder that `FolderWriter` wrote."""

    own = True

    def __init__(self, folder: str) -> None:
        """Raises `SourceFailed` if it is no export at all."""
        super().__init__()
        self._folder = folder
        try:
            self._tree = Tree(folder)
            marker = fields(self._tree.read(MARKER, HEAD_BYTES).decode(), MarkerFields)
        except OSError as error:
            raise SourceFailed(folder, (error.strerror or "unknown reason").lower()) from error
        except (Invalid, UnicodeDecodeError) as error:
            raise SourceFailed(f"{folder}/{MARKER}", str(error)) from error
        if marker.format != FORMAT or marker.version != VERSION:
            problem = f"version {marker.version} of the format '{marker.format[:60]}' is not known here"
            raise SourceFailed(folder, problem)
        self.has_history = "changes.jsonl" in self._tree.files("history")
        self._room = SOURCE_BYTES
        self._places: dict[str, int] = {}
        self._projects: list[Found[Project]] = []
        self._prompts: list[Found[Prompt]] = []
        self._sheets: list[Found[tuple[str, ResourceRecord, int]]] = []
        self._tasks: list[Found[Task]] = []
        self._read_all()

    def _read_all(self) -> None:
        self._room = _TEXT_BYTES
        for name in self._tree.folders(PROJECTS):
            self._read_project(f"{PROJECTS}/{name}", name)
        self._projects.sort(key=_order_of_project)
        self._prompts.sort(key=_order_of_prompt)
        self._sheets.sort(key=_order_of_sheet)
        for name in self._tree.files(TASKS):
            if name.endswith(".md"):
                self._tasks.append(self._one(f"{TASKS}/{name}", self._task))
        self._tasks.sort(key=_order_of_task)

    def _read_project(self, place: str, name: str) -> None:
        # Numbers for those that have none yet.
        number = -1 - len(self._projects)

        def read(path: str) -> Project:
            record = fields(self._text(path, HEAD_BYTES), ProjectRecord)
            project = project_of(record)
            return replace(project, id=project.id or number, name=project.name or name)

        if PROJECT in self._tree.files(place):
            found = self._one(f"{place}/{PROJECT}", read)
        else:
            found = place, Project(id=number, name=name, created_at=0, updated_at=0)
        self._projects.append(found)
        project = found[1].id if isinstance(found[1], Project) else number
        for file in self._tree.files(f"{place}/{PROMPTS}"):
            if file.endswith(".md"):
                path = f"{place}/{PROMPTS}/{file}"
                self._prompts.append(self._one(path, lambda path: self._prompt(path, project)))
        for inner in self._tree.folders(f"{place}/{RESOURCES}"):
            path = f"{place}/{RESOURCES}/{inner}"
            self._sheets.append(self._one(path, lambda path: self._sheet(path, project)))

    def _one(self, path: str, read: Callable[[str], T]) -> Found[T]:
        try:
            return path, read(path)
        except Invalid as error:
            return path, error.problems[0]
        except OSError as error:
            return path, Problem("", (error.strerror or "it cannot be read").lower())

    def _text(self, path: str, most: int) -> str:
        """Raises `Invalid` and `OSError`."""
        content = self._tree.read(path, most)
        self._room -= len(content)
        if self._room < 0:
            raise SourceFailed(
                self._folder, "its texts have more than 512 MiB; export to a JSON file instead"
            )
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise Invalid([Problem("", "it is not UTF-8")]) from error

    def _prompt(self, path: str, project: int) -> Prompt:
        head, body = split(self._text(path, CONTENT_BYTES + HEAD_BYTES))
        record = fields(head, PromptRecord)
        name = record.name or path.rpartition("/")[2].removesuffix(".md")
        return prompt_of(replace(record, name=name, content=body), project)

    def _task(self, path: str) -> Task:
        head, body = split(self._text(path, NOTES_LENGTH * 4 + HEAD_BYTES))
        return task_of(replace(fields(head, TaskRecord), notes=body or None))

    def _sheet(self, path: str, project: int) -> tuple[str, ResourceRecord, int]:
        contents = [name for name in self._tree.files(path) if name.startswith(CONTENT)]
        if len(contents) != 1:
            wrong = "more than one" if contents else "no"
            raise Invalid([Problem("content", f"there is {wrong} file whose name begins with '{CONTENT}'")])
        record = fields(self._text(f"{path}/{RESOURCE}", HEAD_BYTES), ResourceRecord)
        name = record.name or path.rpartition("/")[2]
        record = replace(record, name=name, mime_type=record.mime_type or DEFAULT_MIME_TYPE, text="")
        return f"{path}/{contents[0]}", record, project

    def close(self) -> None:
        self._tree.__exit__(None, None, None)

    # What a source gives

    def projects(self) -> Iterator[Found[Project]]:
        return iter(self._projects)

    def prompts(self) -> Iterator[Found[Prompt]]:
        return iter(self._prompts)

    def tasks(self) -> Iterator[Found[Task]]:
        return iter(self._tasks)

    def resources(self) -> Iterator[Found[tuple[Resource, bytes]]]:
        for place, sheet in self._sheets:
            if isinstance(sheet, Problem):
                yield place, sheet
                continue
            path, record, project = sheet

            def read(
                path: str, record: ResourceRecord = record, project: int = project
            ) -> tuple[Resource, bytes]:
                content = self._tree.read(path, RESOURCE_BYTES)
                resource, _ = resource_of(record, project)
                return replace(resource, size=len(content)), content

            yield self._one(path, read)

    def contents(self) -> Iterator[Found[bytes]]:
        for folder in self._tree.folders(CONTENTS):
            for name in self._tree.files(f"{CONTENTS}/{folder}"):
                path = f"{CONTENTS}/{folder}/{name}"
                yield self._one(path, lambda path: self._tree.read(path, RESOURCE_BYTES))

    def changes(self) -> Iterator[Found[Change]]:
        decoder = msgspec.json.Decoder(ChangeLine)
        for number, line in enumerate(self._tree.lines(CHANGES, _LINE_BYTES), 1):
            place = f"{CHANGES} line {number}"
            try:
                yield place, change_of(decoder.decode(line))
            except (msgspec.DecodeError, RecursionError) as error:
                yield place, Problem("", str(error))


def _order_of_project(found: Found[Project]) -> tuple[int, int, str]:
    place, project = found
    return (
        (0, 0, place) if isinstance(project, Problem) else (project.id if project.id > 0 else _FAR, 0, place)
    )


def _order_of_prompt(found: Found[Prompt]) -> tuple[int, int, str]:
    place, prompt = found
    return (0, 0, place) if isinstance(prompt, Problem) else (prompt.number or _FAR, prompt.created_at, place)


def _order_of_sheet(found: Found[tuple[str, ResourceRecord, int]]) -> tuple[int, str, str]:
    place, sheet = found
    return (
        (0, "", place)
        if isinstance(sheet, Problem)
        else (sheet[1].number or _FAR, sheet[1].created_at, place)
    )


def _order_of_task(found: Found[Task]) -> tuple[int, int, str]:
    place, task = found
    return (0, 0, place) if isinstance(task, Problem) else (task.id or _FAR, task.created_at, place)
