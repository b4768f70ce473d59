"""Prompt search treats every character as plain text and ignores case, in every script."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.contracts.contract_replay import (
    ServerUnderTest,
    add_prompt,
)

CORPUS = (
    "100% sure",
    "snake_case",
    'say "hello"',
    "it's here",
    "NOT a word",
    "a * b",
    "(x OR y)",
    "C:\\path",
    "well-known",
    "abc",
    "Straße 7",
    "STRASSE 8",
    "École",
    "İstanbul",
    "σοφος",
    "日本語の本",
    "🎒 packed",
    "two\nlines",
)


@pytest.fixture(scope="module")
def corpus_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    """A server on a store that tests do not change. The title of a prompt is its number."""
    with ServerUnderTest(tmp_path_factory.mktemp("library"), "prompt-store") as server:
        for number, content in enumerate(CORPUS):
            add_prompt(server, f"#{number}", content)
        add_prompt(server, "Needle in the TITLE", "Hay")
        yield server


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("%", ["100% sure"]),
        ("0%", ["100% sure"]),
        ("%%", []),
        ("100% SURE", ["100% sure"]),
        ("1%e", []),
        ("_", ["snake_case"]),
        ("e_c", ["snake_case"]),
        ("a_c", []),
        ("a%c", []),
        ('"', ['say "hello"']),
        ('"hello"', ['say "hello"']),
        ('"hello', ['say "hello"']),
        ("'", ["it's here"]),
        ("' OR '1'='1", []),
        ("NOT", ["NOT a word"]),
        ("not a", ["NOT a word"]),
        ("NOT abc", []),
        ("*", ["a * b"]),
        ("ab*", []),
        ("a * B", ["a * b"]),
        ("x OR", ["(x OR y)"]),
        ("(x", ["(x OR y)"]),
        ("y)", ["(x OR y)"]),
        ("abc OR say", []),
        ("\\", ["C:\\path"]),
        ("c:\\PATH", ["C:\\path"]),
        ("title:needle", []),
        ("content : hay", []),
        ("-known", ["well-known"]),
        ("^abc", []),
        ("NEAR(abc)", []),
        ("straße", ["Straße 7", "STRASSE 8"]),
        ("STRASSE", ["Straße 7", "STRASSE 8"]),
        ("strasse", ["Straße 7", "STRASSE 8"]),
        ("ß", ["Straße 7", "STRASSE 8"]),
        ("école", ["École"]),
        ("ÉCOLE", ["École"]),
        ("é", ["École"]),
        ("ÉC", ["École"]),
        ("İSTANBUL", ["İstanbul"]),
        ("i̇stanbul", ["İstanbul"]),
        ("STANBUL", ["İstanbul"]),
        ("İ", ["İstanbul"]),
        ("ΣΟΦΟΣ", ["σοφος"]),
        ("σοφοσ", ["σοφος"]),
        ("ΟΣ", ["σοφος"]),
        ("ς", ["σοφος"]),
        ("本", ["日本語の本"]),
        ("日本", ["日本語の本"]),
        ("語の本", ["日本語の本"]),
        ("🎒", ["🎒 packed"]),
        ("two\nlines", ["two\nlines"]),
        ("needle", ["Hay"]),
        ("the title", ["Hay"]),
        ("#1", [CORPUS[number] for number in (1, *range(10, 18))]),
        ("nowhere to be found", []),
    ],
)
def test_a_search_finds_its_query_as_plain_text(
    corpus_server: ServerUnderTest, query: str, found: list[str]
) -> None:
    result = corpus_server.data("search_prompts", query=query, limit=100)
    assert sorted(prompt["snippet"] for prompt in result["prompts"]) == sorted(found)
    assert (result["total"], result["query"], result["has_more"]) == (len(found), query, False)


def test_an_empty_query_lists_everything(corpus_server: ServerUnderTest) -> None:
    found, listed = corpus_server.data("search_prompts", query=""), corpus_server.data("list_prompts")
    assert found.pop("query") == ""
    assert found == listed
    assert found["total"] == len(CORPUS) + 1


LEFT, RIGHT = "left " * 200, " right" * 200


@pytest.mark.parametrize(
    ("content", "is_cut_left", "is_cut_right"),
    [
        (f"{LEFT}needle{RIGHT}", True, True),
        (f"needle{RIGHT}", False, True),
        (f"{LEFT}NEEDLE", True, False),
        ("a needle in little hay", False, False),
        (f"{LEFT}needle{RIGHT}needle", True, True),
        # Characters that grow when their case is folded, and characters beyond the basic plane.
        (f"{'İ' * 1000}needle{'ß' * 1000}", True, True),
        (f"{'🎒' * 1000}needle{'🎒' * 1000}", True, True),
    ],
)
def test_the_snippet_of_a_hit_surrounds_the_first_match(
    server: ServerUnderTest, content: str, is_cut_left: bool, is_cut_right: bool
) -> None:
    add_prompt(server, "Hay", content)
    (prompt,) = server.data("search_prompts", query="Needle")["prompts"]
    snippet = prompt["snippet"]
    assert "needle" in snippet.lower()
    assert snippet.startswith("...") is is_cut_left
    assert snippet.endswith("...") is is_cut_right
    text = snippet.removeprefix("...").removesuffix("...")
    assert text in content
    assert len(text) <= 200
    first = re.search("needle", content, re.IGNORECASE)
    assert first
    assert content.index(text) <= first.start() < first.end() <= content.index(text) + len(text)


def test_the_snippet_of_a_hit_in_the_title_is_the_beginning_of_the_content(server: ServerUnderTest) -> None:
    add_prompt(server, "Needle", "x" * 300)
    (prompt,) = server.data("search_prompts", query="needle")["prompts"]
    assert prompt["snippet"] == "x" * 200 + "..."


def test_a_search_reflects_changes(server: ServerUnderTest) -> None:
    identity = add_prompt(server, "First", "An old straße")
    server.text("update_prompt", id=identity, content="A new word")
    assert server.data("search_prompts", query="STRASSE")["total"] == 0
    assert server.data("search_prompts", query="NEW")["total"] == 1
    server.text("delete_prompt", id=identity)
    assert server.data("search_prompts", query="NEW")["total"] == 0
