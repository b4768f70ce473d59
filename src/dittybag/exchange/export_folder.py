"""The layout of an export folder.

dittybag.yaml                                marks the folder as an export
projects/NAME/project.yaml
projects/NAME/prompts/NAME.md                front matter, then the content, byte for byte
projects/NAME/resources/NAME/resource.yaml
projects/NAME/resources/NAME/content.EXT     the content
tasks/000123-SOME-WORDS.md                   front matter, then the notes
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from dittybag import files
from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind, type_of
from dittybag.domain.errors import Conflict, Invalid, Problem, SourceFailed
from dittybag.domain.mime_types import extension_of
from dittybag.domain.projects import DEFAULT_PROJECT, Project
from dittybag.domain.prompts import CONTENT_BYTES, Prompt
from dittybag.domain.resources import CONTENT_BYTES as RESOURCE_BYTES
from dittybag.domain.resources import DEFAULT_MIME_TYPE, Resource
from dittybag.domain.tasks import NOTES_BYTES, Task
from dittybag.exchange.export_records import (
    BODY_FIELDS,
    RECORD_TYPES,
    named_project,
    to_entity,
    to_record,
)
from dittybag.exchange.file_names import file_name, task_file_name
from dittybag.exchange.folder_tree import FolderTree
from dittybag.exchange.import_sources import FileSource, SourceEntity, SourceEntry, entity_of
from dittybag.exchange.json_file import FORMAT, VERSION
from dittybag.exchange.record_front_matter import (
    FIELDS_BYTES,
    TASK_FIELDS_BYTES,
    format_record,
    parse_fields,
    split_front_matter,
)

MARKER: Final = "dittybag.yaml"
#: Keeps Git from converting line endings.
ATTRIBUTES: Final = ".gitattributes"
ATTRIBUTES_TEXT: Final = b"* -text\n"
PROJECTS: Final = "projects"
PROJECT: Final = "project.yaml"
PROMPTS: Final = "prompts"
RESOURCES: Final = "resources"
RESOURCE: Final = "resource.yaml"
CONTENT: Final = "content."
TASKS: Final = "tasks"

#: Files with the fields of an entity.
FIELDS_FILE: Final = re.compile(
    rf"{TASKS}/[^/]+\.md|{PROJECTS}/[^/]+/(?:{PROJECT}|{PROMPTS}/[^/]+\.md|{RESOURCES}/[^/]+/{RESOURCE})"
)
CONTENT_FILE: Final = re.compile(rf"({PROJECTS}/[^/]+/{RESOURCES}/[^/]+)/{CONTENT}[^/]*")


class MarkerFields(Struct, frozen=True, kw_only=True):
    """The fields of the marker file."""

    format: str = ""
    version: int = 0
    #: The exported project; empty for a whole workspace.
    project: str = ""


def read_marker(tree: FolderTree) -> MarkerFields:
    """Return the fields of the marker file. Raises `Invalid`, `UnicodeDecodeError` and `OSError`."""
    return parse_fields(tree.read(MARKER, FIELDS_BYTES).decode(), MarkerFields)


# Reading, of files that people may have added, edited and merged


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
    return os.path.isfile(os.path.join(folder, MARKER))


class FolderSource(FileSource):
    """The content of a folder that was written by `FolderWriter`."""

    is_export = True

    def __init__(self, folder: str) -> None:
        """Raises `SourceFailed` if the folder is not a valid export."""
        super().__init__()
        self._folder = folder
        try:
            self._tree = FolderTree(folder)
            marker = read_marker(self._tree)
        except OSError as error:
            raise SourceFailed(folder, files.describe(error)) from error
        except (Invalid, UnicodeDecodeError) as error:
            raise SourceFailed(f"{folder}/{MARKER}", str(error)) from error
        if marker.format != FORMAT or marker.version != VERSION:
            problem = f"format '{marker.format[:60]}' version {marker.version} is not supported"
            raise SourceFailed(folder, f"{problem}; this Dittybag reads '{FORMAT}' version {VERSION}")
        self._bytes_left = _TEXT_BYTES
        #: The entities by kind. Resources are without their contents, whose paths are below.
        self._found: dict[Kind, list[SourceEntry[SourceEntity]]] = {kind: [] for kind in ENTITY_TYPES}
        self._content_paths: dict[str, str] = {}
        for name in self._tree.folders(PROJECTS):
            self._read_project(f"{PROJECTS}/{name}", name)
        self._ids = {DEFAULT_PROJECT: 0} | {
            found.entity.name: found.entity.id
            for _, found in self._found["project"]
            if not isinstance(found, Problem)
        }
        self._read_markdown_files("task", TASKS)
        for found in self._found.values():
            found.sort(key=_creation_order)

    def _read_project(self, folder: str, name: str) -> None:
        # A temporary id.
        number = -1 - len(self._found["project"])
        if PROJECT in self._tree.files(folder):
            found = self._try_read(f"{folder}/{PROJECT}", self._project, name, number)
        else:
            found = folder, SourceEntity(entity_of(Project, id=number, name=name))
        self._found["project"].append(found)
        project = number if isinstance(found[1], Problem) else found[1].entity.id
        self._read_markdown_files("prompt", f"{folder}/{PROMPTS}", project)
        for inner in self._tree.folders(f"{folder}/{RESOURCES}"):
            path = f"{folder}/{RESOURCES}/{inner}"
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
        contents = [name for name in self._tree.files(path) if name.startswith(CONTENT)]
        if len(contents) != 1:
            problem = f"the folder must contain exactly one {CONTENT}* file, not {len(contents)}"
            raise Invalid([Problem("content", problem)])
        self._content_paths[path] = f"{path}/{contents[0]}"
        head = self._text(f"{path}/{RESOURCE}", FIELDS_BYTES)
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


# Writing


#: Exported files have a creation time; files that a user has added do not.
_CREATED: Final = re.compile(rb"^created_at: ", re.MULTILINE)
#: Larger than any exported Markdown or YAML file.
_FIELDS_FILE_BYTES: Final = TASK_FIELDS_BYTES + 8 * 1024 * 1024


def _check_target(folder: str, project: str | None) -> None:
    """Raise `Conflict` if the folder contains anything but an export of the same scope, and `OSError`."""
    try:
        with closing(FolderTree(folder)) as tree:
            if MARKER in tree.files(""):
                marker = read_marker(tree)
            elif any(not name.startswith(".") for name in os.listdir(folder)):
                raise Conflict(f"{folder} is not empty and is not a Dittybag export")
            else:
                return
    except FileNotFoundError:
        return
    except (Invalid, UnicodeDecodeError) as error:
        raise Conflict(f"{folder}/{MARKER} is not valid: {error}") from error
    except NotADirectoryError as error:
        raise Conflict(f"{folder} is a file, not a folder") from error
    if marker.format != FORMAT or marker.version > VERSION:
        raise Conflict(f"{folder} is an export in a format that this version of Dittybag cannot update")
    if marker.project != (project or ""):
        scope = f"project '{marker.project}'" if marker.project else "a whole workspace"
        raise Conflict(f"{folder} contains an export of {scope}")


class FolderWriter:
    """Writes an export to a folder, and deletes the files of entities that no longer exist."""

    def __init__(self, folder: str, *, project: str | None) -> None:
        """Raises `Conflict` and `OSError`."""
        _check_target(folder, project)
        self.project = project
        os.makedirs(folder, exist_ok=True)  # all other paths are relative to descriptors
        self._tree = FolderTree(folder)
        self._written_paths: set[str] = set()
        self._taken_paths: set[str] = set()
        self._project_paths: dict[int, str] = {}
        #: The number of files that were created, changed or deleted.
        self.changed = 0
        marker = MarkerFields(format=FORMAT, version=VERSION, project=project or "")
        self._write(MARKER, format_record(asdict(marker)))
        if not os.path.lexists(os.path.join(folder, ATTRIBUTES)):
            self._write(ATTRIBUTES, ATTRIBUTES_TEXT)

    def entity(self, entity: Entity, content: bytes | None = None) -> None:
        if isinstance(entity, Project):
            path = self._project_paths[entity.id] = self._unique_path(PROJECTS, entity.name)
            self._write(f"{path}/{PROJECT}", format_record(asdict(to_record(entity))))
        elif isinstance(entity, Resource):
            path = self._unique_path(f"{self._project_paths[entity.project]}/{RESOURCES}", entity.name)
            self._write(f"{path}/{RESOURCE}", format_record(asdict(to_record(entity))))
            kind = entity.mime_type.partition(";")[0].strip().lower()
            ending = extension_of(kind).removeprefix(".") or ("txt" if entity.is_text else "bin")
            self._write(f"{path}/{CONTENT}{ending}", content or b"")
        elif isinstance(entity, Prompt):
            folder = f"{self._project_paths[entity.project]}/{PROMPTS}"
            record = _front_matter(entity)
            body = record.pop(BODY_FIELDS["prompt"])
            self._write(self._unique_path(folder, entity.name, ".md"), format_record(record, body))
        else:
            record = _front_matter(entity)
            body = record.pop(BODY_FIELDS["task"]) or ""
            path = f"{TASKS}/{task_file_name(entity.id, entity.title)}"
            self._write(path, format_record(record, body))

    def finish(self) -> None:
        for path in self._stale_files():
            self._tree.remove(path)
            self.changed += 1
        # One sync for all files: a sync after each file takes minutes.
        os.sync()

    def close(self) -> None:
        self._tree.close()

    def _write(self, path: str, content: bytes) -> None:
        self._written_paths.add(path)
        self.changed += self._tree.write(path, content)

    def _unique_path(self, folder: str, name: str, ending: str = "") -> str:
        """Return the path for an entity, distinct from all others even if the disk ignores case."""
        path = f"{folder}/{file_name(name)}{ending}"
        if path.lower() in self._taken_paths:
            path = f"{folder}/{file_name(name, digits=64)}{ending}"
        self._taken_paths.add(path.lower())
        return path

    def _stale_files(self) -> list[str]:
        """Return the files of earlier exports that this export did not write."""
        found = [
            file.path
            for file in self._tree.walk(_may_have_entities)
            if file.kind == "file" and not file.name.startswith(".") and file.path not in self._written_paths
        ]
        return [path for path in found if self._is_exported(path)]

    def _is_exported(self, path: str) -> bool:
        """Whether an earlier export wrote a file, rather than a user."""
        if content := CONTENT_FILE.fullmatch(path):
            record = f"{content[1]}/{RESOURCE}"
            return record in self._written_paths or self._is_exported(record)
        if path.endswith(f"/{PROJECT}"):
            return True
        if not FIELDS_FILE.fullmatch(path):
            return False
        try:
            head = self._tree.read(path, _FIELDS_FILE_BYTES)
        except (Invalid, OSError):
            return False
        end = head.find(b"\n---", 4)
        return _CREATED.search(head, 0, end if end > 0 and path.endswith(".md") else len(head)) is not None


def _front_matter(entity: Prompt | Task) -> dict[str, Any]:
    """Return the fields of a record, with dictionaries for arguments and comments."""
    return {
        name: tuple(msgspec.to_builtins(value)) if isinstance(value, tuple) else value
        for name, value in asdict(to_record(entity)).items()
    }


def _may_have_entities(folder: files.WalkedFile) -> bool:
    return folder.name in (PROJECTS, TASKS) if folder.depth == 1 else not folder.name.startswith(".")
