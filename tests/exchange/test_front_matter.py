"""Front matter: any text comes back as it was, and people may write it as they like."""

from __future__ import annotations

import pytest
import yaml  # type: ignore[import-untyped]  # has no types of its own
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from dittybag.domain.errors import Invalid
from dittybag.exchange.record_front_matter import fields, split, written

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


class Sample(Struct, forbid_unknown_fields=True):
    text: str = ""
    texts: tuple[str, ...] = ()
    number: int = 0


@given(text=TEXTS, texts=st.lists(TEXTS.filter(bool)), body=TEXTS)
def test_any_text_comes_back(text: str, texts: list[str], body: str) -> None:
    head, below = split(written({"text": text, "texts": tuple(texts), "number": 7}, body).decode())
    assert fields(head, Sample) == Sample(text, tuple(texts), 7)
    assert below == body


@given(text=TEXTS.filter(bool))
def test_other_programs_read_the_same_text(text: str) -> None:
    assert yaml.safe_load(written({"text": text}).decode()) == {"text": text}


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
def test_what_people_write_is_understood(whole: str, text: str, body: str) -> None:
    head, below = split(whole)
    assert (fields(head, Sample).text, below) == (text, body)


@pytest.mark.parametrize(
    "head",
    [
        "text: a\ntext: b\n",
        "- a\n",
        "text: [" * 500,
        "number: many\n",
        "x: 1\n",
        "text: \x07\n",
        "a" * 600_000,
    ],
)
def test_what_makes_no_sense_is_refused(head: str) -> None:
    with pytest.raises(Invalid):
        fields(head, Sample)
