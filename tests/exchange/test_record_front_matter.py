"""Front matter round-trips any text, and accepts the variants of YAML that people write."""

from __future__ import annotations

import pytest
import yaml  # type: ignore[import-untyped]  # has no types of its own
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from dittybag.domain.errors import Invalid
from dittybag.exchange.record_front_matter import format_record, parse_fields, split_front_matter

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


class SampleFields(Struct, forbid_unknown_fields=True):
    text: str = ""
    texts: tuple[str, ...] = ()
    number: int = 0


@given(text=TEXTS, texts=st.lists(TEXTS.filter(bool)), body=TEXTS)
def test_any_text_round_trips(text: str, texts: list[str], body: str) -> None:
    head, below = split_front_matter(
        format_record({"text": text, "texts": tuple(texts), "number": 7}, body).decode()
    )
    assert parse_fields(head, SampleFields) == SampleFields(text, tuple(texts), 7)
    assert below == body


@given(text=TEXTS.filter(bool))
def test_pyyaml_reads_the_same_text(text: str) -> None:
    assert yaml.safe_load(format_record({"text": text}).decode()) == {"text": text}


@pytest.mark.parametrize(
    ("whole", "text", "body"),
    [
        ("---\r\ntext: a\r\n---\r\nbody\r\n", "a", "body\r\n"),
        ("\ufeff---\ntext: 'it''s'\n---\n", "it's", ""),
        ("---\ntext: |\n  two\n  lines\n---\nbody", "two\nlines\n", "body"),
        ("---\ntext: 2026-01-01\n---\n---\n", "2026-01-01", "---\n"),
        ("---\n---\nbody", "", "body"),
        ("no front matter", "", "no front matter"),
        ("---\ntext: yes\n---", "yes", ""),
    ],
)
def test_variants_of_front_matter_are_accepted(whole: str, text: str, body: str) -> None:
    head, below = split_front_matter(whole)
    assert (parse_fields(head, SampleFields).text, below) == (text, body)


@pytest.mark.parametrize(
    "head",
    [
        "text: a\ntext: b\n",
        "- a\n",
        "text: [" * 500,
        # A recursive parser overflows the stack and ends the process.
        "text: " + "[" * 200_000,
        "text: &a x\ntexts: [*a]\n",
        "number: many\n",
        "x: 1\n",
        "text: \x07\n",
        "a" * 600_000,
    ],
)
def test_invalid_fields_are_refused(head: str) -> None:
    with pytest.raises(Invalid):
        parse_fields(head, SampleFields)
