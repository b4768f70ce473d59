"""Writer of export folders, with one file per entity so that they are easy to diff and merge."""

from __future__ import annotations

import os
import re
from typing import Any, Final

import msgspec
from msgspec.structs import asdict

from dittybag.domain.changes import Change
from dittybag.domain.errors import Conflict, Invalid
from dittybag.domain.projects import Project
from dittybag.domain.prompts import Argument, Prompt
from dittybag.domain.resources import Resource
from dittybag.domain.tasks import Task
from dittybag.exchange.export_records import (
    change_record,
    project_record,
    prompt_record,
    resource_record,
    task_record,
)
from dittybag.exchange.file_names import extension, file_name, task_file_name
from dittybag.exchange.folder_layout import (
    ATTRIBUTES,
    ATTRIBUTES_TEXT,
    CHANGES,
    CONTENT,
    CONTENTS,
    HISTORY,
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
from dittybag.exchange.json_file import FORMAT, VERSION
from dittybag.exchange.record_front_matter import FIELDS_BYTES, format_record, parse_fields

#: Exported files have an id; files that a user has added do not.
_ID: Final = re.compile(rb"^id: ", re.MULTILINE)
_CONTENT_FILE: Final = re.compile(r"[0-9a-f]{64}")


def check_target_folder(folder: str, project: str | None) -> None:
    """Raise `Conflict` if the folder contains anything but an export of the same scope, and `OSError`."""
    try:
        with FolderTree(folder) as tree:
            if MARKER in tree.files(""):
                marker = parse_fields(tree.read(MARKER, FIELDS_BYTES).decode(), MarkerFields)
            elif any(not name.startswith(".") for name in os.listdir(folder)):  # noqa: PTH208
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

    def __init__(self, folder: str, *, project: str | None, history: bool) -> None:
        """`project`: the exported project, `None` for a whole workspace. Raises `Conflict` and `OSError`."""
        check_target_folder(folder, project)
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103  # all other paths are relative to descriptors
        self._tree = FolderTree(folder)
        self._written_paths: set[str] = set()
        self._taken_paths: set[str] = set()
        self._project_paths: dict[int, str] = {}
        self._log = self._tree.begin(CHANGES) if history else None
        #: The number of files that were created, changed or deleted.
        self.changed = 0
        marker = MarkerFields(format=FORMAT, version=VERSION, project=project or "")
        self._write(MARKER, format_record(asdict(marker)))
        if not os.path.lexists(os.path.join(folder, ATTRIBUTES)):  # noqa: PTH118
            self._write(ATTRIBUTES, ATTRIBUTES_TEXT)

    def project(self, project: Project) -> None:
        path = self._project_paths[project.id] = self._unique_path(PROJECTS, project.name)
        self._write(f"{path}/{PROJECT}", format_record(asdict(project_record(project))))

    def prompt(self, prompt: Prompt) -> None:
        path = self._unique_path(f"{self._project_paths[prompt.project]}/{PROMPTS}", prompt.name, ".md")
        record = {**asdict(prompt_record(prompt, "")), "arguments": tuple(map(_argument, prompt.arguments))}
        self._write(path, format_record(record, record.pop("content")))

    def resource(self, resource: Resource, content: bytes) -> None:
        path = self._unique_path(f"{self._project_paths[resource.project]}/{RESOURCES}", resource.name)
        record = asdict(resource_record(resource, b"", ""))
        del record["text"], record["base64"]
        self._write(f"{path}/{RESOURCE}", format_record(record))
        ending = extension(resource.mime_type, text=resource.is_text)
        self._write(f"{path}/{CONTENT}{ending}", content)

    def task(self, task: Task) -> None:
        record = asdict(task_record(task))
        body = record.pop("notes") or ""
        self._write(f"{TASKS}/{task_file_name(task.id, task.title)}", format_record(record, body))

    def content(self, sha256: str, content: bytes) -> None:
        self._write(f"{CONTENTS}/{sha256[:2]}/{sha256}", content)

    def change(self, change: Change) -> None:
        assert self._log is not None
        self._log.write(msgspec.json.encode(change_record(change)) + b"\n")

    def finish(self) -> None:
        """Complete the export. Raises `OSError`."""
        if self._log is not None:
            self._written_paths.add(CHANGES)
            self.changed += self._tree.finish(CHANGES, self._log)
        for path in self._stale_files():
            self._tree.remove(path)
            self.changed += 1
        self._remove_empty()
        # One sync for all files: a sync after each file takes minutes.
        os.sync()

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
        self._tree.__exit__(None, None, None)

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

    # Stale files

    def _stale_files(self) -> list[str]:
        """Return the files of earlier exports that this export did not write."""
        found = [f"{TASKS}/{name}" for name in self._tree.files(TASKS) if name.endswith(".md")]
        for project in self._tree.folders(PROJECTS):
            path = f"{PROJECTS}/{project}"
            found += [f"{path}/{PROJECT}"] if PROJECT in self._tree.files(path) else []
            prompts = f"{path}/{PROMPTS}"
            found += [f"{prompts}/{name}" for name in self._tree.files(prompts) if name.endswith(".md")]
        found = [path for path in found if path not in self._written_paths and self._was_exported(path)]
        for project in self._tree.folders(PROJECTS):
            for name in self._tree.folders(f"{PROJECTS}/{project}/{RESOURCES}"):
                found += self._stale_resource_files(f"{PROJECTS}/{project}/{RESOURCES}/{name}")
        return found + self._stale_history_files()

    def _stale_resource_files(self, path: str) -> list[str]:
        names = self._tree.files(path)
        record_path = f"{path}/{RESOURCE}"
        if record_path not in self._written_paths and not (
            RESOURCE in names and self._was_exported(record_path)
        ):
            return []
        exported = (f"{path}/{name}" for name in names if name == RESOURCE or name.startswith(CONTENT))
        return [path for path in exported if path not in self._written_paths]

    def _stale_history_files(self) -> list[str]:
        found = [CHANGES] if "changes.jsonl" in self._tree.files(HISTORY) else []
        for folder in self._tree.folders(CONTENTS):
            path = f"{CONTENTS}/{folder}"
            found += [f"{path}/{name}" for name in self._tree.files(path) if _CONTENT_FILE.fullmatch(name)]
        return [path for path in found if path not in self._written_paths]

    def _was_exported(self, path: str) -> bool:
        try:
            head = self._tree.read(path, _EXPORTED_FILE_BYTES)
        except (Invalid, OSError):
            return False
        end = head.find(b"\n---", 4)
        return _ID.search(head, 0, end if end > 0 and path.endswith(".md") else len(head)) is not None

    def _remove_empty(self) -> None:
        for project in self._tree.folders(PROJECTS):
            path = f"{PROJECTS}/{project}"
            for name in self._tree.folders(f"{path}/{RESOURCES}"):
                self._tree.remove_empty(f"{path}/{RESOURCES}/{name}")
            for inner in (f"{path}/{RESOURCES}", f"{path}/{PROMPTS}", path):
                self._tree.remove_empty(inner)
        for folder in self._tree.folders(CONTENTS):
            self._tree.remove_empty(f"{CONTENTS}/{folder}")
        for folder in (CONTENTS, HISTORY, TASKS):
            self._tree.remove_empty(folder)


#: Larger than any exported Markdown or YAML file.
_EXPORTED_FILE_BYTES: Final = 8 * 1024 * 1024


def _argument(argument: Argument) -> dict[str, Any]:
    """Return the fields of an argument, without defaults."""
    found: dict[str, Any] = msgspec.to_builtins(argument)
    return found
