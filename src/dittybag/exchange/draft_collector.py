"""Drafts for the tasks of another program, adjusted to the rules of Dittybag, with notes about that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.task_drafts import TaskDraft
from dittybag.domain.tasks import (
    ASSIGNEE_LENGTH,
    COMMENT_LENGTH,
    DEFAULT_PRIORITY,
    DEFAULT_STATUS,
    DEFAULT_TIME_ESTIMATE,
    LABEL_LENGTH,
    LINK_LENGTH,
    MAX_BLOCKERS,
    MAX_COMMENTS,
    MAX_LABELS,
    MAX_LINKS,
    NOTES_BYTES,
    PRIORITIES,
    TIME_ESTIMATE_LENGTH,
    TITLE_LENGTH,
    Comment,
    TaskStatus,
    problems,
)
from dittybag.domain.text import one_line
from dittybag.exchange.file_times import parse_time

#: Maximum length of an id of another program.
_ID_LENGTH: Final = 200
#: At most this many ids are named in a note.
_NAMED_IDS: Final = 5
#: At most this many levels of parts are searched for a dependency on a whole.
_MAX_LEVELS: Final = 1_000
#: At most this many different notes are kept.
_MAX_NOTES: Final = 1_000


class ForeignComment(Struct, frozen=True):
    """A comment of another program."""

    text: str
    author: str = ""
    #: In ISO 8601.
    at: str = ""


class ForeignTask(Struct, frozen=True, kw_only=True):
    """A task of another program, with its values as they are there."""

    #: What other tasks call it.
    id: str
    #: The start of its source, as in `beads:`; the id is appended.
    origin: str
    title: str
    notes: str = ""
    #: A word, or a number from 1 to 5.
    priority: str | int = DEFAULT_PRIORITY
    time_estimate: str = ""
    due: str = ""
    #: A word.
    status: str = DEFAULT_STATUS
    #: In ISO 8601.
    created: str = ""
    completed: str = ""
    assignee: str = ""
    labels: Sequence[str] = ()
    links: Sequence[str] = ()
    comments: Sequence[ForeignComment] = ()
    #: Ids of other tasks.
    parent: str = ""
    blocked_by: Sequence[str] = ()


def with_edges(task: ForeignTask, find: Callable[[str], str]) -> ForeignTask:
    """Return a task whose edges are the ids that `find` returns for the names of other tasks."""
    parent = find(task.parent) if task.parent else ""
    return replace(task, parent=parent, blocked_by=[find(name) for name in task.blocked_by])


class DraftCollector:
    """Collects drafts and notes."""

    def __init__(self) -> None:
        self._drafts: dict[str, TaskDraft] = {}
        #: How often each id occurs.
        self._uses: dict[str, int] = {}
        #: The ids to which a note applies.
        self._notes: dict[str, list[str]] = {}

    def note(self, text: str, id: str = "") -> None:
        """Add a note about a task, or about the whole source. Equal notes are combined."""
        if text in self._notes or len(self._notes) < _MAX_NOTES:
            self._notes.setdefault(text, []).append(id)

    @property
    def notes(self) -> list[str]:
        """The notes as sentences, each with the ids of the tasks that it is about."""
        return [f"{text}{_named(ids)}" for text, ids in self._notes.items()]

    def add(self, task: ForeignTask) -> None:
        """Add a task. An id that is already in use gets a number."""
        key = self._free_key(one_line(task.id, _ID_LENGTH))
        title, notes = self._title_and_notes(key, task)
        status, label = self._status(key, task.status)
        labels = [*task.labels, label] if label else task.labels
        self._drafts[key] = TaskDraft(
            key=key,
            source=one_line(f"{task.origin}{key}", LINK_LENGTH),
            title=title,
            notes=notes or None,
            priority=self._priority(key, task.priority),
            time_estimate=one_line(task.time_estimate, TIME_ESTIMATE_LENGTH) or DEFAULT_TIME_ESTIMATE,
            due_date=self._due(key, task.due),
            status=status,
            completed_at=self._time(key, task.completed) if status == "done" else None,
            created_at=self._time(key, task.created),
            assignee=one_line(task.assignee, ASSIGNEE_LENGTH) or None,
            labels=self._lines(key, "label", labels, LABEL_LENGTH, MAX_LABELS),
            # One more link is the source.
            links=self._lines(key, "link", task.links, LINK_LENGTH, MAX_LINKS - 1),
            comments=self._comments(key, task),
            parent=one_line(task.parent, _ID_LENGTH) or None,
            blocked_by=tuple(dict.fromkeys(one_line(other, _ID_LENGTH) for other in task.blocked_by)),
        )

    def drafts(self) -> list[TaskDraft]:
        """Return the drafts, without edges to tasks that do not exist."""
        resolved = {key: self._with_parent(draft) for key, draft in self._drafts.items()}
        return [self._with_blockers(draft, resolved) for draft in resolved.values()]

    # Edges

    def _with_parent(self, draft: TaskDraft) -> TaskDraft:
        if draft.parent is None or draft.parent in self._drafts:
            return draft
        self.note(f"parent '{draft.parent}', which is not in the source, was left out", draft.key)
        return replace(draft, parent=None)

    def _with_blockers(self, draft: TaskDraft, drafts: Mapping[str, TaskDraft]) -> TaskDraft:
        if not draft.blocked_by:
            return draft
        wholes = _wholes(draft, drafts)
        found: dict[str, None] = {}
        for key in map(str, draft.blocked_by):
            if key not in drafts:
                self.note(f"dependency on '{key}', which is not in the source, was left out", draft.key)
            elif key in wholes:
                # There, a task does not wait for its parts; here, both would wait for each other.
                self.note(f"dependency on '{key}', which it is a part of, was left out", draft.key)
            else:
                found[key] = None
        if len(found) > MAX_BLOCKERS:
            self.note(f"only the first {MAX_BLOCKERS} dependencies were imported", draft.key)
        return replace(draft, blocked_by=tuple(found)[:MAX_BLOCKERS])

    # Values

    def _free_key(self, id: str) -> str:
        key = first = id or "(no id)"
        while key in self._drafts:
            if key == first:
                self.note("the id occurs more than once; edges lead to the first task with it", first)
            self._uses[first] = self._uses.get(first, 1) + 1
            key = f"{first}#{self._uses[first]}"
        return key

    def _title_and_notes(self, key: str, task: ForeignTask) -> tuple[str, str]:
        title, notes = one_line(task.title, TITLE_LENGTH), task.notes.strip()
        if not title:
            self.note("it has no title", key)
        if len(task.title.strip()) > TITLE_LENGTH:
            self.note(f"the title was shortened to {TITLE_LENGTH} characters; the notes have all of it", key)
            notes = f"{task.title.strip()}\n\n{notes}".strip()
        elif title != task.title.strip():
            self.note("line breaks and control characters in the title became spaces", key)
        return title or "(no title)", self._body(key, "the notes were", notes, NOTES_BYTES)

    def _body(self, key: str, what: str, text: str, max_length: int) -> str:
        if "\0" in text:
            self.note(f"{what} imported without NUL characters", key)
            text = text.replace("\0", "")
        kept = text[:max_length].encode()[:NOTES_BYTES].decode(errors="ignore")
        if len(kept) < len(text):
            self.note(f"{what} shortened to {len(kept):,} characters", key)
        return kept

    def _status(self, key: str, word: str) -> tuple[TaskStatus, str | None]:
        """Return the status, and a label that preserves what it does not say."""
        status = parse_status(word)
        if status is not None:
            return status, None
        label = one_line(word, LABEL_LENGTH)
        kind = "status" if is_waiting(word) else "unknown status"
        self.note(f"{kind} '{label}' was imported as {DEFAULT_STATUS} with the label '{label}'", key)
        return DEFAULT_STATUS, label

    def _priority(self, key: str, value: str | int) -> int:
        if isinstance(value, int):
            low, high = PRIORITIES
            return min(max(value, low), high)
        priority = parse_priority(value)
        if priority is None:
            shown = one_line(value, 60)
            self.note(f"unknown priority '{shown}' was imported as {DEFAULT_PRIORITY}", key)
        return DEFAULT_PRIORITY if priority is None else priority

    def _due(self, key: str, text: str) -> str | None:
        due = text.strip().replace(" ", "T", 1)
        if due and problems(due_date=due):
            self.note(f"'{one_line(text, 60)}' is not a valid due date and was left out", key)
            return None
        return due or None

    def _time(self, key: str, text: str) -> int | None:
        time = parse_time(text) if text.strip() else None
        if time is None and text.strip():
            self.note(f"'{one_line(text, 60)}' is not a valid time and was left out", key)
        return time

    def _lines(
        self, key: str, kind: str, values: Iterable[str], max_length: int, max_count: int
    ) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for value in values:
            line = one_line(value, max_length)
            if len(found) == max_count and line not in found:
                self.note(f"only the first {max_count} {kind}s were imported", key)
                break
            if len(value.strip()) > max_length:
                self.note(f"the {kind} '{line[:60]}' was shortened to {max_length} characters", key)
            if line:
                found[line] = None
        return tuple(found)

    def _comments(self, key: str, task: ForeignTask) -> tuple[Comment, ...]:
        comments = task.comments
        if len(comments) > MAX_COMMENTS:
            self.note(f"only the last {MAX_COMMENTS} comments were imported", key)
        found = []
        for comment in comments[-MAX_COMMENTS:]:
            text = self._body(key, "a comment was", comment.text.strip(), COMMENT_LENGTH)
            author = one_line(comment.author, ASSIGNEE_LENGTH) or "unknown"
            if text:
                found.append(Comment(self._time(key, comment.at or task.created) or 0, author, text))
        return tuple(sorted(found, key=lambda comment: comment.at))


def _wholes(draft: TaskDraft, drafts: Mapping[str, TaskDraft]) -> set[str]:
    """Return the keys of the tasks that a task is a part of, directly or through others."""
    found: set[str] = set()
    parent = draft.parent
    while isinstance(parent, str) and parent not in found and len(found) < _MAX_LEVELS:
        found.add(parent)
        parent = drafts[parent].parent
    return found


def _named(ids: Sequence[str]) -> str:
    named = list(dict.fromkeys(filter(None, ids)))
    if not named:
        return ""
    more = f" and {len(named) - _NAMED_IDS} more" if len(named) > _NAMED_IDS else ""
    return f" ({', '.join(named[:_NAMED_IDS])}{more})"


# The words that programs use for statuses and priorities


_NOT_LETTERS: Final = re.compile(r"[\W_]+")

_STATUS_WORDS: Final[Mapping[TaskStatus, str]] = {
    "todo": "todo open opened reopened pending new backlog ready planned unstarted notstarted",
    "doing": "doing inprogress started active wip working hooked",
    "review": "review inreview needsreview reviewing testing qa verify",
    "done": "done closed complete completed finished fixed resolved merged true yes x",
    "dropped": "dropped cancelled canceled wontdo wontfix notplanned rejected declined duplicate obsolete",
}
_STATUSES: Final[Mapping[str, TaskStatus]] = {
    word: status for status, words in _STATUS_WORDS.items() for word in words.split()
} | {"": "todo", "false": "todo", "no": "todo"}
#: Tasks with these are open, and keep the word as a label.
_WAITING: Final = frozenset(("blocked", "deferred", "waiting", "onhold", "paused", "pinned", "later"))

_PRIORITY_WORDS: Final[Mapping[int, str]] = {
    5: "critical urgent highest blocker p0 immediate",
    4: "high important major p1",
    3: "medium normal moderate default p2",
    2: "low minor p3",
    1: "lowest someday trivial p4",
}
_PRIORITIES: Final[Mapping[str, int]] = {
    word: priority for priority, words in _PRIORITY_WORDS.items() for word in words.split()
} | {str(number): number for number in range(PRIORITIES[0], PRIORITIES[1] + 1)}


def parse_status(word: str) -> TaskStatus | None:
    """Return the status that a word means; `None` if it is not known, or has no status of ours."""
    return _STATUSES.get(_NOT_LETTERS.sub("", word).lower())


def is_waiting(word: str) -> bool:
    """Return whether a word means that an open task is not to be done now."""
    return _NOT_LETTERS.sub("", word).lower() in _WAITING


def parse_priority(word: str) -> int | None:
    """Return the priority that a word or a number means; `None` if it is not known."""
    plain = _NOT_LETTERS.sub("", word).lower()
    return _PRIORITIES.get(plain) if plain else DEFAULT_PRIORITY
