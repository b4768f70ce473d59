"""Output of changes, as table rows and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dittybag.cli.colours import GREEN, GREY, RED, TEAL
from dittybag.cli.output import clip_line, format_time, print_list
from dittybag.cli.table import Column
from dittybag.domain.changes import Change, Purged
from dittybag.domain.times import iso

_COLOURS: Final = {"create": GREEN, "delete": RED, "update": None, "restore": TEAL}


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


def print_changes(changes: Sequence[Change], projects: Mapping[int, str]) -> None:
    """Print a table of changes."""
    print_list(
        {"changes": [change_data(change, projects) for change in changes]},
        (
            Column("change", right=True),
            Column("when"),
            Column("actor", shrink="cut", rank=1),
            Column("action"),
            Column("item", shrink="wrap"),
            Column("project", shrink="cut", rank=2),
        ),
        [_row(change, projects) for change in changes],
        empty=("No matching changes",),
        cell_styles=lambda row, name: (
            {"fg": _COLOURS[changes[row].action] if name == "action" else GREY if name == "when" else None}
        ),
    )


def _row(change: Change, projects: Mapping[int, str]) -> tuple[str, ...]:
    label = change.label
    if isinstance(change.state, Purged):
        label = f"(purged by {change.state.by}, {format_time(change.state.at)})"
    return (
        str(change.seq),
        format_time(change.at),
        clip_line(change.actor, 40),
        change.verb,
        f"{change.kind} {clip_line(label, 500)}",
        "" if change.project is None else clip_line(projects.get(change.project, "(deleted)")),
    )
