"""Output of changes, as table rows and as JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dittybag.cli.output import clip_line, print_table
from dittybag.domain.changes import Change, Purged
from dittybag.domain.display import format_ago
from dittybag.domain.times import iso

_COLOURS: Final = {"create": "green", "delete": "red", "update": None, "restore": "cyan"}
_PAST: Final = {"create": "created", "update": "updated", "delete": "deleted", "restore": "restored"}


def _action_label(change: Change) -> str:
    return "undone" if change.action == "restore" and change.after is None else _PAST[change.action]


def change_data(change: Change, projects: Mapping[int, str]) -> dict[str, Any]:
    """Return a change for JSON output."""
    return {
        "change": change.seq,
        "batch": change.batch,
        "at": iso(change.at),
        "actor": change.actor,
        "action": change.action,
        "kind": change.kind,
        "id": change.entity,
        "name": None if isinstance(change.state, Purged) else change.label,
        "project": None if change.project is None else projects.get(change.project),
        "purged": None if change.purged is None else {"by": change.purged.by, "at": iso(change.purged.at)},
    }


def _item(change: Change) -> str:
    label = change.label
    if isinstance(change.state, Purged):
        label = f"(purged by {change.state.by}, {iso(change.state.at)})"
    return f"{change.kind} {clip_line(label, 60)}"


def print_changes(changes: Sequence[Change], projects: Mapping[int, str]) -> None:
    """Print a table of changes."""
    now = time.time_ns() // 1000
    readable = sys.stdout.isatty()
    print_table(
        ("change", "when", "actor", "action", "item", "project"),
        [
            (
                str(change.seq),
                format_ago(change.at, now) if readable else iso(change.at),
                clip_line(change.actor, 40),
                _action_label(change),
                _item(change),
                "" if change.project is None else clip_line(projects.get(change.project, "(deleted)")),
            )
            for change in changes
        ],
        right=(0,),
        shrinkable=(2, 4, 5),
        styles=lambda row: {"fg": _COLOURS[changes[row].action]},
    )
