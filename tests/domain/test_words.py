"""Words, stems, queries, spellings and passages of the ranked search."""

from __future__ import annotations

import re

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.domain.passages import find_passage, match_spans
from dittybag.domain.ranked_search import ParsedQuery, SearchTerm, columns_of, parse_query
from dittybag.domain.spelling import nearest_word
from dittybag.domain.stemming import stem
from dittybag.domain.words import split_words, stems_of
from tests.stdio_server_process import ROOT


def test_stems_are_those_of_fts5_except_of_words_with_y() -> None:
    text = " ".join(file.read_text() for file in sorted((ROOT / "docs").rglob("*.md")))
    words = sorted(set(re.findall(r"[a-z]{3,}", text.lower())))
    assert len(words) > 2000
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize = 'porter ascii')")
    connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab (texts, instance)")
    connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(words))
    expected = {row: term for term, row in connection.execute("SELECT term, doc FROM stems")}
    different = [word for row, word in enumerate(words) if stem(word) != expected[row]]
    assert [word for word in different if "y" not in word] == []


@pytest.mark.parametrize(
    "forms",
    [
        "deploy deploys deployed deploying deployment deployments",
        "query queries queried",
        "connect connected connecting connection connections",
        "general generalize generally",
        "hop hopped hopping",
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len(set(stems_of(forms))) == 1


@given(st.text())
def test_words_of_any_text_are_letters_and_digits_and_do_not_depend_on_case(text: str) -> None:
    words = split_words(text)
    assert all(word.isalnum() and len(word) <= 40 for word in words)
    assert split_words("\n".join(words)) == words or not text.isascii()
    assert split_words(text.upper()) == words or not text.isascii()


def test_names_are_split_and_repeated_names_count_once() -> None:
    names, tags, description, content = columns_of(("Code review", "code-review_v2", "a-b", "", "x"))
    assert (names, tags, description, content) == (["code", "review", "v2"], ["a", "b"], [], ["x"])


def test_a_query_has_terms_and_phrases() -> None:
    assert parse_query('deploying the "Exact Text" app') == ParsedQuery(
        (SearchTerm("deploy"), SearchTerm("the"), SearchTerm("app")), ("Exact Text",)
    )
    assert parse_query("deplo", incomplete=True).terms == (
        SearchTerm("deplo"),
        SearchTerm("deplo", is_prefix=True),
    )
    assert parse_query("deplo ", incomplete=True).terms == (SearchTerm("deplo"),)
    assert parse_query("%").phrases == ("%",)
    assert parse_query(" ") == parse_query('""') == ParsedQuery(())
    assert len(parse_query(" ".join(f"w{number}" for number in range(200))).terms) == 32


@pytest.mark.parametrize(
    ("word", "words", "nearest"),
    [
        ("kuberentes", "docker kubernetes", "kubernetes"),
        ("teh", "the tea the", "the"),
        ("cat", "dog house", None),
        ("word", "word words", "words"),
        ("serach", "search search march", "search"),
    ],
)
def test_the_nearest_word_has_at_most_two_wrong_letters(word: str, words: str, nearest: str | None) -> None:
    assert nearest_word(word, words.split()) == nearest


def test_the_passage_has_the_most_words_of_the_query() -> None:
    text = (
        "A database. " + "Filler words. " * 50 + "Migrations of the database run at night. " + "More. " * 50
    )
    passage = find_passage([text, "other"], parse_query("migrating databases"))
    assert "Migrations of the database" in passage
    assert passage.startswith("...")
    assert find_passage(["", "Only\nthis"], parse_query("nothing")) == "Only this"
    assert find_passage([text], parse_query('"run at"')).count("run at") == 1


def test_matches_are_found_in_any_form() -> None:
    text = "Stra\u00dfe, deployments and 日本語"
    spans = match_spans(text, parse_query('STRASSE deploy 本 "s AND"'))
    assert [text[start:end] for start, end in spans] == ["Stra\u00dfe", "deployments and", "日本語"]
