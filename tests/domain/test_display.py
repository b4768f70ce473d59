"""Sizes, counts and relative times in words."""

from __future__ import annotations

import pytest

from dittybag.domain.display import format_ago, format_count, format_size


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (100_000, "97.7 KiB"),
        (1024 * 1024 - 1, "1 MiB"),
        (4 * 1024**2, "4 MiB"),
        (3 * 1024**3 // 2, "1.5 GiB"),
        (5000 * 1024**3, "5,000 GiB"),
    ],
)
def test_sizes_are_formatted_in_binary_units(size: int, words: str) -> None:
    assert format_size(size) == words


def test_counts_are_formatted_with_their_noun() -> None:
    assert format_count(1, "prompt") == "1 prompt"
    assert format_count(0, "library", "libraries") == "0 libraries"
    assert format_count(12_345, "task") == "12,345 tasks"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1 minute ago"),
        (7199, "1 hour ago"),
        (3 * 86400, "3 days ago"),
        (8 * 86400, "1 week ago"),
        (70 * 86400, "2 months ago"),
        (800 * 86400, "2 years ago"),
    ],
)
def test_relative_times_are_formatted_in_words(seconds: int, words: str) -> None:
    assert format_ago(1_000_000_000, 1_000_000_000 + seconds * 1_000_000) == words
