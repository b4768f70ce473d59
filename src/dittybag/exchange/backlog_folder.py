"""Reads the folder of Backlog.md: a Markdown file for each task."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from msgspec import Struct

from dittybag.domain.errors import Invalid, Problem, SourceFailed
from dittybag.exchange.draft_collector import (
    DraftCollector,
    ForeignComment,
    ForeignTask,
    parse_status,
    with_edges,
)
from dittybag.exchange.folder_tree import FolderTree
from dittybag.exchange.record_front_matter import FIELDS_BYTES, split_front_matter
from dittybag.exchange.task_input import MAX_BYTES, MAX_TASKS, TaskInput, too_large, too_many
from dittybag.yaml_nodes import YamlNode, YamlProblem, list_of, mapping_of, parse_yaml, text_of

_FILE_BYTES: Final = 2 * 1024**2
_DRAFTS: Final = "drafts"
#: The folders with tasks.
_FOLDERS: Final = ("tasks", "completed", "archive/tasks")
_ARCHIVE: Final = "archive/tasks"

#: Marks of Backlog.md around the sections of a text.
_MARK: Final = re.compile(r"^<!-- (?:SECTION:[A-Z0-9_]+|AC|DOD):(?:BEGIN|END) -->[ \t]*\n?", re.MULTILINE)
_COMMENTS_TITLE: Final = "## Comments"
_COMMENTS_BEGIN: Final = "<!-- COMMENTS:BEGIN -->"
_COMMENTS_END: Final = "<!-- COMMENTS:END -->"
_RULE: Final = re.compile(r"^---[ \t]*$", re.MULTILINE)
#: Names such as @ann without quotes, which Backlog.md reads but YAML does not allow: alone, and in brackets.
_AT_NAME: Final = re.compile(r'^((?:assignee|reporter):[ \t]*|[ \t]*-[ \t]+)(@[^\n"\\]*)$', re.MULTILINE)
_AT_NAMES: Final = re.compile(r"^(?:assignee|reporter):[ \t]*\[.*$", re.MULTILINE)
_AT_LISTED: Final = re.compile(r"([\[,][ \t]*)(@[^,\]\"'\\]*)")
_ID_NUMBERS: Final = re.compile(r"(?:\D*-)?(\d+(?:\.\d+)*)", re.ASCII)


class _TaskFile(Struct, frozen=True):
    folder: str
    name: str
    text: str

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}"


def read_backlog(path: str, into: DraftCollector) -> None:
    """Collect the tasks of a folder that contains `tasks`. Raises `SourceFailed`, `Invalid` and `OSError`."""
    problems: list[Problem] = []
    tasks: list[ForeignTask] = []
    with closing(FolderTree(path)) as tree:
        for file in _files(path, tree):
            try:
                tasks.append(_to_task(file, into))
            except Invalid as error:
                problems += [Problem(file.path, f"{file.path}: {item.message}") for item in error.problems]
        if drafts := [name for name in tree.files(_DRAFTS) if _is_task(name)]:
            into.note(f"{len(drafts)} drafts were left out")
    if problems:
        raise Invalid(problems)
    ids = {task.id for task in tasks}
    # The prefix of ids can be changed, and numbers can have leading zeros.
    by_numbers = {_numbers(task.id): task.id for task in tasks}

    def find(name: str) -> str:
        return name.lower() if name.lower() in ids else by_numbers.get(_numbers(name) or (0,), name)

    for task in tasks:
        into.add(with_edges(task, find))


def _is_task(name: str) -> bool:
    return name.endswith(".md") and name.lower() != "readme.md"


def _files(path: str, tree: FolderTree) -> Iterator[_TaskFile]:
    """Yield the files of tasks. Raises `SourceFailed`."""
    names = [(folder, name) for folder in _FOLDERS for name in tree.files(folder) if _is_task(name)]
    if len(names) > MAX_TASKS:
        raise SourceFailed(path, too_many())
    total = 0
    for folder, name in sorted(names, key=lambda found: _numbers(found[1])):
        try:
            data = tree.read(f"{folder}/{name}", _FILE_BYTES)
        except Invalid as error:
            raise SourceFailed(f"{folder}/{name}", str(error)) from error
        total += len(data)
        if total > MAX_BYTES:
            raise SourceFailed(path, too_large())
        yield _TaskFile(folder, name, TaskInput(f"{folder}/{name}", data).text.replace("\r\n", "\n"))


def _numbers(id: str) -> tuple[int, ...]:
    """Return the numbers of an id, or of a file name that begins with it, as in `task-7.1`."""
    found = _ID_NUMBERS.match(id[:100])
    return () if found is None else tuple(int(number) for number in found[1].split("."))


def _to_task(file: _TaskFile, into: DraftCollector) -> ForeignTask:
    fields, body = _parse(file.text)
    key = (text_of(fields.get("id")) or "").lower()
    if not key:
        raise Invalid([Problem("id", "it has no id")])
    assignees = _texts(fields.get("assignee"))
    if len(assignees) > 1:
        into.note("only the first assignee was imported", key)
    body, comments = _split_comments(body)
    extra = (text_of(fields.get("milestone")), text_of(fields.get("type")))
    return ForeignTask(
        id=key,
        origin="backlog:",
        title=text_of(fields.get("title")) or "",
        notes=_MARK.sub("", body),
        priority=text_of(fields.get("priority")) or "",
        due=text_of(fields.get("due_date")) or "",
        status=_status(file.folder, text_of(fields.get("status")) or ""),
        created=text_of(fields.get("created_date")) or "",
        completed=text_of(fields.get("updated_date")) or "",
        assignee=assignees[0].removeprefix("@") if assignees else "",
        labels=[*_texts(fields.get("labels")), *(label for label in extra if label)],
        links=[*_texts(fields.get("references")), *_texts(fields.get("documentation"))],
        comments=comments,
        parent=text_of(fields.get("parent_task_id")) or "",
        blocked_by=_texts(fields.get("dependencies")),
    )


def _status(folder: str, word: str) -> str:
    if folder == _ARCHIVE and parse_status(word) != "done":
        return "dropped"
    return word


def _parse(text: str) -> tuple[dict[str, YamlNode], str]:
    """Return the fields and the text below them. Raises `Invalid`."""
    head, body = split_front_matter(text)
    if len(head) > FIELDS_BYTES:
        raise Invalid([Problem("", f"the fields are larger than {FIELDS_BYTES // 1024} KiB")])
    parsed = parse_yaml(_quote_names(head), lines_before=1)
    if isinstance(parsed, YamlProblem):
        where = "" if parsed.line is None else f" (line {parsed.line})"
        raise Invalid([Problem("", f"the fields are not valid YAML{where}: {parsed.message}")])
    return mapping_of(parsed), body


def _texts(node: YamlNode | None) -> list[str]:
    """Return the texts of a list, or of one text."""
    nodes = list_of(node) or ([node] if node is not None else [])
    return [text for item in nodes if (text := text_of(item))]


def _quote_names(head: str) -> str:
    head = _AT_NAMES.sub(lambda line: _AT_LISTED.sub(r'\1"\2"', line[0]), head)
    return _AT_NAME.sub(r'\1"\2"', head)


def _split_comments(body: str) -> tuple[str, list[ForeignComment]]:
    """Return a text without its section of comments, and the comments."""
    before, begin, rest = body.partition(_COMMENTS_BEGIN)
    section, end, after = rest.partition(_COMMENTS_END)
    if not begin or not end:
        return body, []
    return before.rstrip().removesuffix(_COMMENTS_TITLE) + after, list(_comments(section))


def _comments(section: str) -> Iterator[ForeignComment]:
    """Parse comments: lines such as `author: ann`, and a text between two lines with `---`."""
    parts = _RULE.split(section)
    for head, text in zip(parts[::2], parts[1::2], strict=False):
        fields = dict(line.split(":", 1) for line in head.splitlines() if ":" in line)
        yield ForeignComment(text, fields.get("author", "").strip(), fields.get("created", "").strip())
