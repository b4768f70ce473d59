"""Writer of export folders, with one file per entity so that they are easy to diff and merge."""

from __future__ import annotations

import os
import re
from contextlib import closing
from typing import Any, Final

import msgspec
from msgspec.structs import asdict

from dittybag import files
from dittybag.domain.entities import Entity
from dittybag.domain.errors import Conflict, Invalid
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.exchange import folder_layout as layout
from dittybag.exchange.export_records import BODY_FIELDS, to_record
from dittybag.exchange.file_names import extension, file_name, task_file_name
from dittybag.exchange.folder_tree import FolderTree
from dittybag.exchange.json_file import FORMAT, VERSION
from dittybag.exchange.record_front_matter import TASK_FIELDS_BYTES, format_record

#: Exported files have a creation time; files that a user has added do not.
_CREATED: Final = re.compile(rb"^created_at: ", re.MULTILINE)
#: Larger than any exported Markdown or YAML file.
_FIELDS_FILE_BYTES: Final = TASK_FIELDS_BYTES + 8 * 1024 * 1024


def _check_target(folder: str, project: str | None) -> None:
    """Raise `Conflict` if the folder contains anything but an export of the same scope, and `OSError`."""
    try:
        with closing(FolderTree(folder)) as tree:
            if layout.MARKER in tree.files(""):
                marker = layout.read_marker(tree)
            elif any(not name.startswith(".") for name in os.listdir(folder)):
                raise Conflict(f"{folder} is not empty and is not a Dittybag export")
            else:
                return
    except FileNotFoundError:
        return
    except (Invalid, UnicodeDecodeError) as error:
        raise Conflict(f"{folder}/{layout.MARKER} is not valid: {error}") from error
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
        marker = layout.MarkerFields(format=FORMAT, version=VERSION, project=project or "")
        self._write(layout.MARKER, format_record(asdict(marker)))
        if not os.path.lexists(os.path.join(folder, layout.ATTRIBUTES)):
            self._write(layout.ATTRIBUTES, layout.ATTRIBUTES_TEXT)

    def entity(self, entity: Entity, content: bytes | None = None) -> None:
        if isinstance(entity, Project):
            path = self._project_paths[entity.id] = self._unique_path(layout.PROJECTS, entity.name)
            self._write(f"{path}/{layout.PROJECT}", format_record(asdict(to_record(entity))))
        elif isinstance(entity, Resource):
            path = self._unique_path(f"{self._project_paths[entity.project]}/{layout.RESOURCES}", entity.name)
            self._write(f"{path}/{layout.RESOURCE}", format_record(asdict(to_record(entity))))
            ending = extension(entity.mime_type, text=entity.is_text)
            self._write(f"{path}/{layout.CONTENT}{ending}", content or b"")
        elif isinstance(entity, Prompt):
            folder = f"{self._project_paths[entity.project]}/{layout.PROMPTS}"
            record = _front_matter(entity)
            body = record.pop(BODY_FIELDS["prompt"])
            self._write(self._unique_path(folder, entity.name, ".md"), format_record(record, body))
        else:
            record = _front_matter(entity)
            body = record.pop(BODY_FIELDS["task"]) or ""
            path = f"{layout.TASKS}/{task_file_name(entity.id, entity.title)}"
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
        if content := layout.CONTENT_FILE.fullmatch(path):
            record = f"{content[1]}/{layout.RESOURCE}"
            return record in self._written_paths or self._is_exported(record)
        if path.endswith(f"/{layout.PROJECT}"):
            return True
        if not layout.FIELDS_FILE.fullmatch(path):
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
    return (
        folder.name in (layout.PROJECTS, layout.TASKS)
        if folder.depth == 1
        else not folder.name.startswith(".")
    )
