"""Unified diffs as rows of a page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.web.diff_rows import DiffRow, diff_rows

_LINES = st.lists(st.sampled_from(["", "a", "-", "@", "the end"]), max_size=4).map("\n".join)


@given(_LINES, _LINES)
def test_the_rows_contain_both_texts(old: str, new: str) -> None:
    rows = diff_rows(old, new)
    if old == new:
        assert rows == []
        return
    for text, kinds in ((old, ("same", "removed")), (new, ("same", "added"))):
        assert [row.text for row in rows if row.kind in kinds] == (text.split("\n") if text else [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\n" * 500_000, "b\n" * 500_000),
        ("a b " * 250_000, "b a " * 250_000),
        ("".join(f"{number % 7} {number % 11}\n" for number in range(9000)), "0 1\n1 0\n" * 4500),
        ("\n" * 1_000_000, "\n" * 900_000),
    ],
    ids=["lines", "one-line", "alike", "empty"],
)
def test_large_texts_produce_a_limited_number_of_rows(old: str, new: str) -> None:
    rows = diff_rows(old, new)
    assert len(rows) <= 1001
    assert sum(len(row.text) for row in rows) < 100_000


def test_a_long_line_is_cut_before_its_first_difference() -> None:
    rows = diff_rows("x" * 5000 + "one", "x" * 5000 + "two")
    assert [(row.kind, row.text) for row in rows[1:]] == [
        ("removed", "…" + "x" * 60 + "one"),
        ("added", "…" + "x" * 60 + "two"),
    ]


def test_the_rest_of_a_long_diff_is_marked_as_left_out() -> None:
    assert diff_rows("a\n" * 2000, "")[-1] == DiffRow("cut")
