"""Roles in the text of a prompt: where each message begins, found before anything is rendered.

A value of an argument can therefore never begin a message. This module imports nothing else of Dittybag,
because the child processes that render templates load it, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

#: The roles of messages. MCP has only `user` and `assistant`.
ROLES: Final = ("system", "user", "assistant")
#: Maximum number of messages of a prompt. A loop in a template can produce many.
MAX_MESSAGES: Final = 1000
TOO_MANY_MESSAGES: Final = f"it has more than {MAX_MESSAGES:,} messages"
#: Further marks are text. A template may have more marks than messages, because some are in conditions.
_MAX_MARKS: Final = 10 * MAX_MESSAGES

#: A line that begins a message in a stored prompt or a Markdown file. Compiled on first use, to start faster.
_ROLE_LINE: Final = rf"(?m)^--role[ \t]+({'|'.join(ROLES)})[ \t]*\r?$"
_BLANK_LINES: Final = r"(?:[ \t]*\r?\n)*"


class RoleMark(NamedTuple):
    """A part of a text that is not text itself: a message with this role begins after it."""

    start: int
    end: int
    role: str


class Message(NamedTuple):
    """A message of a prompt."""

    role: str
    text: str


def find_role_lines(text: str, *, blank_lines_first: bool = False) -> tuple[RoleMark, ...]:
    """Return the `--role` lines of a text; empty unless its first line is one.

    `blank_lines_first`: blank lines may precede it.
    """
    blanks = re.match(_BLANK_LINES, text) if blank_lines_first else None
    role_line = re.compile(_ROLE_LINE)
    if role_line.match(text, blanks.end() if blanks else 0) is None:
        return ()
    return widen(text, (RoleMark(*line.span(), line[1]) for line in role_line.finditer(text)))


def widen(text: str, marks: Iterable[RoleMark]) -> tuple[RoleMark, ...]:
    """Return the marks with the blank lines around them, and one for those at the end of the text.

    They separate messages and belong to none. Removing them here keeps the blank lines of values.
    """
    wide: list[RoleMark] = []
    end = 0
    for mark in islice(marks, _MAX_MARKS):
        start = _without_blanks(text, end, max(mark.start, end))
        blanks = re.compile(_BLANK_LINES).match(text, _after_line_break(text, mark.end))
        assert blanks is not None
        end = max(mark.end, blanks.end())
        wide.append(RoleMark(start, end, mark.role))
    if wide and (start := _without_blanks(text, end, len(text))) < len(text):
        wide.append(RoleMark(start, len(text), "user"))
    return tuple(wide)


def _without_blanks(text: str, begin: int, end: int) -> int:
    """Return the end of the text between two places without the whitespace before it."""
    return begin + len(text[begin:end].rstrip(" \t\r\n"))


def _after_line_break(text: str, at: int) -> int:
    if text.startswith("\r\n", at):
        return at + 2
    return at + 1 if text.startswith("\n", at) else at


def split_at_marks(text: str, marks: Sequence[RoleMark]) -> list[Message]:
    """Split a text that is not a template into messages."""
    if not marks:
        return [Message("user", text)]
    ends = [mark.start for mark in marks[1:]] + [len(text)]
    parts = [Message(mark.role, text[mark.end : end]) for mark, end in zip(marks, ends, strict=True)]
    return without_empty([Message("user", text[: marks[0].start]), *parts])


def without_empty(messages: Sequence[Message]) -> list[Message]:
    """Return the messages that have a text, or an empty one if none has."""
    return [message for message in messages if message.text.strip()] or [Message("user", "")]


def has_roles(messages: Sequence[Message]) -> bool:
    """Whether there is more to show than a single message of the user."""
    return [message.role for message in messages] not in ([], ["user"])


def role_line(role: str) -> str:
    """Return the line that begins a message in a stored prompt."""
    return f"--role {role}"


def with_role_lines(messages: Sequence[Message]) -> str:
    """Return messages as one text: that of a single message of the user, or all with their roles."""
    if not has_roles(messages):
        return "".join(message.text for message in messages)
    return "\n\n".join(f"{role_line(message.role)}\n{message.text}" for message in messages)
