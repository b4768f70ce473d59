"""Parses a task from one line, such as `Fix login !5 @work due friday`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any, Final

from dittybag.domain.due_dates import EXAMPLES, NotADate, is_short_span, parse_due_date
from dittybag.domain.errors import Invalid, Problem
from dittybag.domain.tasks import PRIORITIES, problems

#: Words after this many stay in the title.
_MAX_WORDS: Final = 500
#: Maximum number of words in a date, as in `24 dec , 2026`.
_MAX_DAY_WORDS: Final = 4

#: A value may be quoted to contain spaces.
_WORDS: Final = re.compile(r'@?"[^"]*"|\S+')
_PRIORITY: Final = re.compile(f"[{PRIORITIES[0]}-{PRIORITIES[1]}]")


def task_fields(text: str, today: date) -> dict[str, Any]:
    """Return the fields of the task: its title and any others that were given.

    Words that are not recognised stay in the title. Raises `Invalid` for a due date in minutes or hours.
    """
    words = _WORDS.findall(text)
    fields: dict[str, Any] = {}
    title: list[str] = []
    at = 0
    while at < len(words):
        used = _parse_field(words, at, today, fields) if at < _MAX_WORDS else 0
        if not used:
            title.append(words[at])
        at += used or 1
    return {"title": " ".join(title), **fields}


def _parse_field(words: Sequence[str], at: int, today: date, fields: dict[str, Any]) -> int:
    """Parse a field at `at` into `fields` and return the number of words used, 0 for a word of the title."""
    word = words[at]
    if word.lower() == "due":
        return _parse_due(words[at + 1 : at + 1 + _MAX_DAY_WORDS], today, fields)
    sign, value = word[:1], _unquote(word[1:])
    if sign == "@" and value:
        fields["project"] = value
    elif sign == "!" and _PRIORITY.fullmatch(value):
        fields["priority"] = int(value)
    else:
        return 0
    return 1


def _parse_due(words: Sequence[str], today: date, fields: dict[str, Any]) -> int:
    for count in range(len(words), 0, -1):
        text = _unquote(" ".join(words[:count]))
        if is_short_span(text):
            problem = f"due {text}: a due date has no minutes and hours from now; use for example {EXAMPLES}"
            raise Invalid([Problem("due_date", problem)])
        try:
            found = parse_due_date(text, today)
        except NotADate:
            continue
        if not any(problems(due_date=found)):
            fields["due_date"] = found
            return count + 1
    return 0


def _unquote(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text.startswith('"') and text.endswith('"') else text
