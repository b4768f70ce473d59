"""Text edits that can be reverted exactly, even after other parts of the text have changed."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class TextEdit(Struct, frozen=True):
    """Replace the text between two positions with `text`."""

    start: int
    end: int
    text: str


class AppliedEdit(Struct, frozen=True, array_like=True):
    """An edit that was made: it replaced `old` with `new`."""

    #: The position of `new`; in a record, relative to the start of the entry.
    at: int
    old: str
    new: str


def apply_edits(text: str, edits: Sequence[TextEdit]) -> tuple[str, tuple[AppliedEdit, ...]]:
    """Apply edits that are in order and do not overlap. Returns the new text and what reverts it."""
    pieces: list[str] = []
    applied: list[AppliedEdit] = []
    done = length = 0
    for edit in edits:
        kept = text[done : edit.start]
        applied.append(AppliedEdit(length + len(kept), text[edit.start : edit.end], edit.text))
        pieces += (kept, edit.text)
        length += len(kept) + len(edit.text)
        done = edit.end
    pieces.append(text[done:])
    return "".join(pieces), tuple(applied)


def shift_edits(applied: Sequence[AppliedEdit], by: int) -> tuple[AppliedEdit, ...]:
    """Move the position of every edit."""
    return tuple(AppliedEdit(edit.at + by, edit.old, edit.new) for edit in applied)


def are_in_place(text: str, applied: Sequence[AppliedEdit]) -> bool:
    """Whether the text still contains every edit at its position."""
    return bool(applied) and all(edit.at >= 0 and text.startswith(edit.new, edit.at) for edit in applied)


def revert_edits(text: str, applied: Sequence[AppliedEdit]) -> str:
    """Return the text before the edits, which must be in place."""
    edits = [TextEdit(edit.at, edit.at + len(edit.new), edit.old) for edit in applied]
    return apply_edits(text, edits)[0]


def combine_edits(
    applied: Sequence[AppliedEdit], text: str, edits: Sequence[TextEdit]
) -> tuple[AppliedEdit, ...]:
    """Combine applied edits with later `edits` to `text`, so that one revert undoes both.

    Returns an empty tuple if an edit overlaps only a part of an applied edit.
    """
    combined = list(applied)
    for edit in reversed(edits):
        growth = len(edit.text) - (edit.end - edit.start)
        others: list[AppliedEdit] = []
        own = AppliedEdit(edit.start, text[edit.start : edit.end], edit.text)
        for earlier in combined:
            end = earlier.at + len(earlier.new)
            if earlier.at <= edit.start and edit.end <= end:
                begin, rest = edit.start - earlier.at, edit.end - earlier.at
                new = earlier.new[:begin] + edit.text + earlier.new[rest:]
                own = AppliedEdit(earlier.at, earlier.old, new)
            elif earlier.at >= edit.end:
                others.append(AppliedEdit(earlier.at + growth, earlier.old, earlier.new))
            elif end <= edit.start:
                others.append(earlier)
            else:
                return ()
        combined = sorted([*others, own], key=lambda item: item.at)
    return tuple(combined)
