"""A task in one line of words: `Fix login !5 @work due friday`, or with the options of the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any, Final

from dittybag.domain.due_dates import NotADate, parse_due_date
from dittybag.domain.tasks import ENERGIES, PRIORITIES, problems

#: Nobody types more than this; what comes after it stays in the title.
_MAX_WORDS: Final = 500
#: So many words name a day at most, as in `24 dec , 2026`.
_MAX_DAY_WORDS: Final = 4

#: Quotes hold words together where a value begins.
_WORDS: Final = re.compile(r'[@~]?"[^"]*"|\S+')
_OPTIONS: Final = {
    "-P": "priority",
    "--priority": "priority",
    "-p": "project",
    "--project": "project",
    "-e": "energy",
    "--energy": "energy",
    "--estimate": "time_estimate",
    "-n": "notes",
    "--notes": "notes",
}
_DUE: Final = ("due", "-d", "--due")


def task_fields(text: str, today: date) -> dict[str, Any]:
    """The fields of the task that is meant: its title, and whatever else was said.

    What is not understood stays in the title.
    """
    words = _WORDS.findall(text)
    fields: dict[str, Any] = {}
    title: list[str] = []
    at = 0
    while at < len(words):
        taken = _take(words, at, today, fields) if at < _MAX_WORDS else 0
        if not taken:
            title.append(words[at])
        at += taken or 1
    return {"title": " ".join(title), **fields}


def _take(words: Sequence[str], at: int, today: date, fields: dict[str, Any]) -> int:
    """How many words from here on say something other than the title; what they say is in `fields` then."""
    word = words[at]
    if word.lower() in _DUE:
        return _take_day(words[at + 1 : at + 1 + _MAX_DAY_WORDS], today, fields)
    if word in _OPTIONS and at + 1 < len(words):
        return 2 if _keep(_OPTIONS[word], _bare(words[at + 1]), fields) else 0
    sign, value = word[:1], _bare(word[1:])
    name = {"!": "priority", "@": "project", "#": "energy", "~": "time_estimate"}.get(sign)
    return 1 if name is not None and value and _keep(name, value, fields) else 0


def _take_day(words: Sequence[str], today: date, fields: dict[str, Any]) -> int:
    for count in range(len(words), 0, -1):
        try:
            found = parse_due_date(_bare(" ".join(words[:count])), today)
        except NotADate:
            continue
        if not any(problems(due_date=found)):
            fields["due_date"] = found
            return count + 1
    return 0


def _keep(name: str, text: str, fields: dict[str, Any]) -> bool:
    """Whether a field can have this value, which it has then."""
    value: Any = text
    if name == "priority":
        if len(text) != 1 or not text.isdecimal() or not PRIORITIES[0] <= int(text) <= PRIORITIES[1]:
            return False
        value = int(text)
    elif name == "energy":
        value = text.lower()
        if value not in ENERGIES:
            return False
    fields[name] = value
    return True


def _bare(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text.startswith('"') and text.endswith('"') else text
