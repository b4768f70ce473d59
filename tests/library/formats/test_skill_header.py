"""The front matter of skills as JSON values: the types of YAML 1.2, as clients see them."""

from __future__ import annotations

from typing import Any

import pytest

from dittybag.library.formats.skill_header import InvalidHeader, parse_header, split_header


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        ("~", None),
        ("", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("on", "on"),
        ("12", 12),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("0o17", 15),
        ("0x1f", 31),
        ("1_000", "1_000"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("1.2.3", "1.2.3"),
        ("9" * 200, "9" * 200),
        ("1e999", "1e999"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("2026-09-13", "2026-09-13"),
        ("12:30:45", "12:30:45"),
        ('"12"', "12"),
        ("'true'", "true"),
        ("|\n  12\n", "12\n"),
        ("[1, 'a', {b: ~}]", [1, "a", {"b": None}]),
        ("{}", {}),
        ("\U0001f9f7 é", "\U0001f9f7 é"),
    ],
)
def test_a_value_has_its_type(text: str, value: Any) -> None:
    found = parse_header(f"key: {text}\n")["key"]
    assert (found, type(found)) == (value, type(value))


def test_the_header_ends_at_the_first_line_of_hyphens() -> None:
    assert split_header("---\nname: a\n---\nbody\n---\n") == "name: a\n"
    assert split_header("--- \r\nname: a\r\n---\t\r\nbody") == "name: a\r\n"
    assert split_header("---\ntext: |\n  ---\n  x\n---") == "text: |\n  ---\n  x\n"


@pytest.mark.parametrize(
    "content", ["", "---", "---\n", "---\nname: a\n", "text\n---\nname: a\n---\n", "----\na: 1\n---\n"]
)
def test_a_file_without_front_matter_is_invalid(content: str) -> None:
    with pytest.raises(InvalidHeader, match="front matter"):
        split_header(content)


@pytest.mark.parametrize(
    "text", ["- a", "text", "", "a: &x 1", "a: [", "a: 1\n---\nb: 2", "? [a]\n: b", "a: \x00"]
)
def test_front_matter_that_is_not_a_mapping_is_invalid(text: str) -> None:
    with pytest.raises(InvalidHeader):
        parse_header(text)
