"""The differences of two texts, and the unified diff of them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from dittybag.text_diff import MAX_EDITS, Run, differences, unified_diff, unified_lines

LINES = st.lists(st.sampled_from(["a", "b", "c", "-- x", "++ y", "@@", ""]), max_size=30)


def patched(old: list[str], diff: list[str]) -> list[str]:
    """Apply a unified diff, as `patch` does."""
    new: list[str] = []
    at = 0
    for line in diff:
        if found := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
            start, length, new_start, new_length = (int(number) if number else 1 for number in found.groups())
            new += old[at : start - (length > 0)]
            at = start - (length > 0)
            assert len(new) == new_start - (new_length > 0)
        elif line[0] == "+":
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            at += 1
            if line[0] == " ":
                new.append(line[1:])
    return new + old[at:]


@given(LINES, LINES)
def test_a_unified_diff_turns_the_old_lines_into_the_new_ones(old: list[str], new: list[str]) -> None:
    assert patched(old, list(unified_lines(old, new))) == new


@given(LINES)
def test_equal_texts_have_no_differences(lines: list[str]) -> None:
    assert differences(lines, list(lines)) == []
    assert unified_diff("\n".join(lines), "\n".join(lines), "name") == ""


def test_too_many_edits_are_one_difference() -> None:
    old = [str(number) for number in range(MAX_EDITS)]
    new = [line if number % 2 else f"x{line}" for number, line in enumerate(old)]
    assert len(differences(old[:10], new[:10])) == 5
    assert differences(["same", *old, *old], ["same", *new, *new]) == [Run(1, 800, 1, 800)]
