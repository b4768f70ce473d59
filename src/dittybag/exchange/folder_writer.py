"""Writes a folder of readable files: a change to one thing is a change to one file."""

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
from dittybag.exchange.folder_tree import Tree
from dittybag.exchange.json_file import FORMAT, VERSION
from dittybag.exchange.record_front_matter import HEAD_BYTES, fields, written

#: What a file that we wrote has, and one that somebody has just added does not.
_ID: Final = re.compile(rb"^id: ", re.MULTILINE)
_CONTENT_FILE: Final = re.compile(r"[0-9a-f]{64}")


def require_room(folder: str, project: str | None) -> None:
    """Raises `Conflict` unless an export of this scope may go into a folder, and `OSError`."""
    try:
        with Tree(folder) as tree:
            if MARKER in tree.files(""):
                marker = fields(tree.read(MARKER, HEAD_BYTES).decode(), MarkerFields)
            elif any(not name.startswith(".") for name in os.listdir(folder)):  # noqa: PTH208
                raise Conflict(f"{folder} is not empty, and nothing that Dittybag has exported")
            else:
                return
    except FileNotFoundError:
        return
    except (Invalid, UnicodeDecodeError) as error:
        raise Conflict(f"{folder}/{MARKER} cannot be understood: {error}") from error
    except NotADirectoryError as error:
        raise Conflict(f"{folder} is a file, not a folder") from error
    if marker.format != FORMAT or marker.version > VERSION:
        raise Conflict(f"{folder} was not exported by this Dittybag, or by a newer one")
    if marker.project != (project or ""):
        held = f"the project '{marker.project}'" if marker.project else "a whole workspace"
        raise Conflict(f"{folder} holds an export of {held}; export into another folder")


class FolderWriter:
    """Writes what it is given; in the end, the files of things that are gone are taken away."""

    def __init__(self, folder: str, *, project: str | None, history: bool) -> None:
        """`project`: the only one, if it is not the whole workspace. Raises `Conflict` and `OSError`."""
        require_room(folder, project)
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103  # all else here is relative to descriptors
        self._tree = Tree(folder)
        self._written: set[str] = set()
        self._taken: set[str] = set()
        self._places: dict[int, str] = {}
        self._log = self._tree.begin(CHANGES) if history else None
        #: How many files were not as they are now.
        self.changed = 0
        marker = MarkerFields(format=FORMAT, version=VERSION, project=project or "")
        self._write(MARKER, written(asdict(marker)))
        if not os.path.lexists(os.path.join(folder, ATTRIBUTES)):  # noqa: PTH118
            self._write(ATTRIBUTES, ATTRIBUTES_TEXT)

    def project(self, project: Project) -> None:
        place = self._places[project.id] = self._place(PROJECTS, project.name)
        self._write(f"{place}/{PROJECT}", written(asdict(project_record(project))))

    def prompt(self, prompt: Prompt) -> None:
        place = self._place(f"{self._places[prompt.project]}/{PROMPTS}", prompt.name, ".md")
        shown = {**asdict(prompt_record(prompt, "")), "arguments": tuple(map(_argument, prompt.arguments))}
        self._write(place, written(shown, shown.pop("content")))

    def resource(self, resource: Resource, content: bytes) -> None:
        place = self._place(f"{self._places[resource.project]}/{RESOURCES}", resource.name)
        shown = asdict(resource_record(resource, b"", ""))
        del shown["text"], shown["base64"]
        self._write(f"{place}/{RESOURCE}", written(shown))
        ending = extension(resource.mime_type, text=resource.is_text)
        self._write(f"{place}/{CONTENT}{ending}", content)

    def task(self, task: Task) -> None:
        shown = asdict(task_record(task))
        body = shown.pop("notes") or ""
        self._write(f"{TASKS}/{task_file_name(task.id, task.title)}", written(shown, body))

    def content(self, sha256: str, content: bytes) -> None:
        self._write(f"{CONTENTS}/{sha256[:2]}/{sha256}", content)

    def change(self, change: Change) -> None:
        assert self._log is not None
        self._log.write(msgspec.json.encode(change_record(change)) + b"\n")

    def end(self) -> None:
        """Finish. Raises `OSError`."""
        if self._log is not None:
            self._written.add(CHANGES)
            self.changed += self._tree.finish(CHANGES, self._log)
        for path in self._gone():
            self._tree.remove(path)
            self.changed += 1
        self._remove_empty()
        # Once for all of them: to wait for the disk after every file takes minutes.
        os.sync()

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
        self._tree.__exit__(None, None, None)

    def _write(self, path: str, content: bytes) -> None:
        self._written.add(path)
        self.changed += self._tree.write(path, content)

    def _place(self, folder: str, name: str, ending: str = "") -> str:
        """Where a thing of this name goes; no two go to the same place on any disk."""
        place = f"{folder}/{file_name(name)}{ending}"
        if place.lower() in self._taken:
            place = f"{folder}/{file_name(name, digits=64)}{ending}"
        self._taken.add(place.lower())
        return place

    # What is gone

    def _gone(self) -> list[str]:
        """Files that we wrote once, and not this time."""
        found = [f"{TASKS}/{name}" for name in self._tree.files(TASKS) if name.endswith(".md")]
        for project in self._tree.folders(PROJECTS):
            place = f"{PROJECTS}/{project}"
            found += [f"{place}/{PROJECT}"] if PROJECT in self._tree.files(place) else []
            prompts = f"{place}/{PROMPTS}"
            found += [f"{prompts}/{name}" for name in self._tree.files(prompts) if name.endswith(".md")]
        found = [path for path in found if path not in self._written and self._is_ours(path)]
        for project in self._tree.folders(PROJECTS):
            for name in self._tree.folders(f"{PROJECTS}/{project}/{RESOURCES}"):
                found += self._gone_of_resource(f"{PROJECTS}/{project}/{RESOURCES}/{name}")
        return found + self._gone_history()

    def _gone_of_resource(self, place: str) -> list[str]:
        names = self._tree.files(place)
        sheet = f"{place}/{RESOURCE}"
        if sheet not in self._written and not (RESOURCE in names and self._is_ours(sheet)):
            return []
        ours = (f"{place}/{name}" for name in names if name == RESOURCE or name.startswith(CONTENT))
        return [path for path in ours if path not in self._written]

    def _gone_history(self) -> list[str]:
        found = [CHANGES] if "changes.jsonl" in self._tree.files(HISTORY) else []
        for folder in self._tree.folders(CONTENTS):
            place = f"{CONTENTS}/{folder}"
            found += [f"{place}/{name}" for name in self._tree.files(place) if _CONTENT_FILE.fullmatch(name)]
        return [path for path in found if path not in self._written]

    def _is_ours(self, path: str) -> bool:
        try:
            head = self._tree.read(path, SOME_BYTES)
        except (Invalid, OSError):
            return False
        end = head.find(b"\n---", 4)
        return _ID.search(head, 0, end if end > 0 and path.endswith(".md") else len(head)) is not None

    def _remove_empty(self) -> None:
        for project in self._tree.folders(PROJECTS):
            place = f"{PROJECTS}/{project}"
            for name in self._tree.folders(f"{place}/{RESOURCES}"):
                self._tree.remove_empty(f"{place}/{RESOURCES}/{name}")
            for inner in (f"{place}/{RESOURCES}", f"{place}/{PROMPTS}", place):
                self._tree.remove_empty(inner)
        for folder in self._tree.folders(CONTENTS):
            self._tree.remove_empty(f"{CONTENTS}/{folder}")
        for folder in (CONTENTS, HISTORY, TASKS):
            self._tree.remove_empty(folder)


#: More than any file of ours has.
SOME_BYTES: Final = 8 * 1024 * 1024


def _argument(argument: Argument) -> dict[str, Any]:
    """Only what it has."""
    found: dict[str, Any] = msgspec.to_builtins(argument)
    return found
