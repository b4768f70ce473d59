"""The words that programs use for statuses and priorities of tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from dittybag.domain.tasks import DEFAULT_PRIORITY, PRIORITIES, TaskStatus

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
