"""Reader of export folders, whose files people may have added, edited and merged."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from msgspec.structs import replace

from dittybag import files
from dittybag.domain.entities import ENTITY_TYPES, Kind, type_of
from dittybag.domain.errors import Invalid, Problem, SourceFailed
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.prompts import CONTENT_BYTES
from dittybag.domain.resources import CONTENT_BYTES as RESOURCE_BYTES
from dittybag.domain.resources import DEFAULT_MIME_TYPE, Resource
from dittybag.domain.tasks import NOTES_BYTES
from dittybag.exchange import folder_layout as layout
from dittybag.exchange.export_records import (
    BODY_FIELDS,
    RECORD_TYPES,
    named_project,
    to_entity,
)
from dittybag.exchange.folder_tree import FolderTree
from dittybag.exchange.import_sources import FileSource, SourceEntity, SourceEntry, entity_of
from dittybag.exchange.json_file import FORMAT, VERSION
from dittybag.exchange.record_front_matter import (
    FIELDS_BYTES,
    TASK_FIELDS_BYTES,
    parse_fields,
    split_front_matter,
)

T = TypeVar("T")
P = ParamSpec("P")

#: Maximum size of all text files of a folder together; they are kept in memory.
_TEXT_BYTES: Final = 512 * 1024 * 1024
#: Maximum size of the text in a Markdown file.
_BODY_BYTES: Final = max(CONTENT_BYTES, NOTES_BYTES)
#: Sorts entities without a number last.
_UNNUMBERED: Final = 2**63


def is_export_folder(folder: str) -> bool:
    """Return whether a folder has the marker file of an export."""
    return os.path.isfile(os.path.join(folder, layout.MARKER))


class FolderSource(FileSource):
    """The content of a folder that was written by `FolderWriter`."""

    is_export = True

    def __init__(self, folder: str) -> None:
        """Raises `SourceFailed` if the folder is not a valid export."""
        super().__init__()
        self._folder = folder
        try:
            self._tree = FolderTree(folder)
            marker = layout.read_marker(self._tree)
        except OSError as error:
            raise SourceFailed(folder, files.describe(error)) from error
        except (Invalid, UnicodeDecodeError) as error:
            raise SourceFailed(f"{folder}/{layout.MARKER}", str(error)) from error
        if marker.format != FORMAT or marker.version != VERSION:
            problem = f"format '{marker.format[:60]}' version {marker.version} is not supported"
            raise SourceFailed(folder, f"{problem}; this Dittybag reads '{FORMAT}' version {VERSION}")
        self._bytes_left = _TEXT_BYTES
        #: The entities by kind. Resources are without their contents, whose paths are below.
        self._found: dict[Kind, list[SourceEntry[SourceEntity]]] = {kind: [] for kind in ENTITY_TYPES}
        self._content_paths: dict[str, str] = {}
        for name in self._tree.folders(layout.PROJECTS):
            self._read_project(f"{layout.PROJECTS}/{name}", name)
        self._ids = {DEFAULT_PROJECT: 0} | {
            found.entity.name: found.entity.id
            for _, found in self._found["project"]
            if not isinstance(found, Problem)
        }
        self._read_markdown_files("task", layout.TASKS)
        for found in self._found.values():
            found.sort(key=_creation_order)

    def _read_project(self, folder: str, name: str) -> None:
        # A temporary id.
        number = -1 - len(self._found["project"])
        if layout.PROJECT in self._tree.files(folder):
            found = self._try_read(f"{folder}/{layout.PROJECT}", self._project, name, number)
        else:
            found = folder, SourceEntity(entity_of(Project, id=number, name=name))
        self._found["project"].append(found)
        project = number if isinstance(found[1], Problem) else found[1].entity.id
        self._read_markdown_files("prompt", f"{folder}/{layout.PROMPTS}", project)
        for inner in self._tree.folders(f"{folder}/{layout.RESOURCES}"):
            path = f"{folder}/{layout.RESOURCES}/{inner}"
            self._found["resource"].append(self._try_read(path, self._resource, project))

    def _read_markdown_files(self, kind: Kind, folder: str, project: int = 0) -> None:
        for name in self._tree.files(folder):
            if name.endswith(".md"):
                self._found[kind].append(self._try_read(f"{folder}/{name}", self._markdown, kind, project))

    def _try_read(
        self, path: str, read: Callable[Concatenate[str, P], T], *args: P.args, **options: P.kwargs
    ) -> SourceEntry[T]:
        try:
            return path, read(path, *args, **options)
        except Invalid as error:
            return path, error.problems[0]
        except OSError as error:
            return path, Problem("", files.describe(error))

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

    def _project(self, path: str, name: str, number: int) -> SourceEntity:
        record: Any = parse_fields(self._text(path, FIELDS_BYTES), RECORD_TYPES["project"])
        return to_entity("project", replace(record, name=record.name or name), number)

    def _markdown(self, path: str, kind: Kind, project: int) -> SourceEntity:
        max_bytes = TASK_FIELDS_BYTES if kind == "task" else FIELDS_BYTES
        head, body = split_front_matter(self._text(path, _BODY_BYTES + max_bytes))
        record: Any = parse_fields(head, RECORD_TYPES[kind], max_bytes)
        if kind == "prompt" and not record.name:
            record = replace(record, name=path.rpartition("/")[2].removesuffix(".md"))
        if kind == "task":
            project = named_project(kind, record, self._ids)
        return to_entity(kind, replace(record, **{BODY_FIELDS[kind]: body}), project)

    def _resource(self, path: str, project: int) -> SourceEntity:
        contents = [name for name in self._tree.files(path) if name.startswith(layout.CONTENT)]
        if len(contents) != 1:
            problem = f"the folder must contain exactly one {layout.CONTENT}* file, not {len(contents)}"
            raise Invalid([Problem("content", problem)])
        self._content_paths[path] = f"{path}/{contents[0]}"
        head = self._text(f"{path}/{layout.RESOURCE}", FIELDS_BYTES)
        record: Any = parse_fields(head, RECORD_TYPES["resource"])
        name = record.name or path.rpartition("/")[2]
        given = replace(record, name=name, mime_type=record.mime_type or DEFAULT_MIME_TYPE, text="")
        return to_entity("resource", given, project)

    def close(self) -> None:
        self._tree.close()

    # Methods of `FileSource`

    def entities(self, kind: Kind) -> Iterator[SourceEntry[SourceEntity]]:
        for location, found in self._found[kind]:
            if isinstance(found, Problem) or kind != "resource":
                yield location, found
            else:
                yield self._try_read(self._content_paths[location], self._with_content, found.entity)

    def _with_content(self, path: str, resource: Resource) -> SourceEntity:
        return SourceEntity(resource, self._tree.read(path, RESOURCE_BYTES))


def _creation_order(entry: SourceEntry[SourceEntity]) -> tuple[int, int, str]:
    location, found = entry
    if isinstance(found, Problem):
        return 0, 0, location
    number = getattr(found.entity, type_of(found.entity).key)
    return number if number > 0 else _UNNUMBERED, found.entity.created_at, location
