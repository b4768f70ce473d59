"""Side-by-side diffs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.web.side_by_side import DiffRow, TextSpan, side_by_side

_LINES = st.lists(st.sampled_from(["", "a", "b c", "b d", "the end"]), max_size=30).map("\n".join)


def _text(spans: tuple[TextSpan, ...]) -> str:
    return "".join(span.text for span in spans)


def _highlighted(spans: tuple[TextSpan, ...]) -> list[str]:
    return [span.text for span in spans if span.is_highlighted]


def _side(rows: list[DiffRow], text: str, *, is_old: bool) -> str:
    """Rebuild one side from the rows; skipped lines are taken from the text."""
    lines: list[str] = []
    for row in rows:
        if row.kind == "skipped":
            lines += text.split("\n")[len(lines) : len(lines) + row.count]
        elif (number := row.old_number if is_old else row.new_number) is not None:
            lines.append(_text(row.old if is_old else row.new))
            assert number == len(lines)
    return "\n".join(lines)


@given(_LINES, _LINES)
def test_the_rows_contain_both_texts(old: str, new: str) -> None:
    rows = side_by_side(old, new)
    if old == new:
        assert rows == []
        return
    assert _side(rows, old, is_old=True) == old
    assert _side(rows, new, is_old=False) == new
    assert all((row.kind == "same") == (row.old == row.new) for row in rows if row.kind != "skipped")


def test_only_differing_words_are_highlighted() -> None:
    (row,) = side_by_side("Name the three gaps.", "Name the two worst gaps.")
    assert (_highlighted(row.old), _highlighted(row.new)) == (["three"], ["two worst"])
    (row,) = side_by_side("one", "two")
    assert (_highlighted(row.old), _highlighted(row.new)) == ([], [])


def test_unchanged_lines_far_from_a_difference_are_only_counted() -> None:
    old = "\n".join(f"line {number}" for number in range(1, 101))
    rows = side_by_side(old, old.replace("line 50\n", "line fifty\n"))
    assert [(row.kind, row.count or row.old_number) for row in rows] == [
        ("skipped", 46),
        *[("same", number) for number in (47, 48, 49)],
        ("changed", 50),
        *[("same", number) for number in (51, 52, 53)],
        ("skipped", 47),
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\n" * 500_000, "b\n" * 500_000),
        ("a b " * 250_000, "b a " * 250_000),
        ("".join(f"{number % 7} {number % 11}\n" for number in range(9000)), "0 1\n1 0\n" * 4500),
        ("a b c d e f\n" * 2000, "a c b d f e\n" * 2000),
        ("\n" * 1_000_000, "\n" * 900_000),
    ],
    ids=["lines", "one-line", "alike", "words", "empty"],
)
def test_large_texts_produce_a_limited_number_of_rows(old: str, new: str) -> None:
    rows = side_by_side(old, new)
    assert len(rows) <= 1001
    assert sum(len(_text(row.old)) + len(_text(row.new)) for row in rows) < 100_000
