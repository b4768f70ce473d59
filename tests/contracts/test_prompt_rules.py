"""Prompts: names derived from titles, tags, and the order and pages of lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contracts.contract_replay import (
    Json,
    ServerUnderTest,
    StartServer,
    add_prompt,
    contents,
    create_project,
    titles,
)

# Names derived from titles


def names(server: ServerUnderTest) -> list[str]:
    return [prompt["name"] for prompt in server.request("prompts/list")["prompts"]]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Code Review Assistant", "code-review-assistant"),
        ("SHOUTING", "shouting"),
        ("Hello,   World", "hello-world"),
        ("either/or\\both", "either-or-both"),
        ("Plan 9 from outer space", "plan-9-from-outer-space"),
        ("v2_final.draft", "v2_final.draft"),
        ("über", "uber"),
        ("u\u0308ber", "uber"),
        ("Straße nach İstanbul", "strasse-nach-istanbul"),
        ("Проверка кода", "proverka-koda"),
        ("Ελληνικά", "ellinika"),
        ("日本", "ri-ben"),
        ("コードレビュー", "kodorebiyu"),
        ("中文提示、二", "zhong-wen-ti-shi-er"),
        ("코드 검토", "ko-deu-geom-to"),
        ("Wrap the 🎁", "wrap-the-gift"),
        ("x" * 200, "x" * 200),
    ],
)
def test_the_name_of_a_prompt_is_derived_from_its_title(
    server: ServerUnderTest, title: str, name: str
) -> None:
    add_prompt(server, title)
    assert names(server) == [name]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Code review", "Code, review"),
        ("!!!", "???"),
        ("🎒", "🎒🎒"),
        ("日本語", "中文"),
        (".", ".."),
        (" - ", " _ "),
        ("é" * 200, "ü" * 200),
        ("x" * 199 + "!", "x" * 199 + "?"),
        ("İ" * 200, "ß" * 200),
    ],
)
def test_every_title_gets_a_valid_unique_name(server: ServerUnderTest, first: str, second: str) -> None:
    add_prompt(server, first, "First")
    add_prompt(server, second, "Second")
    one, other = names(server)
    assert one != other
    assert re.fullmatch(r"[a-z0-9._-]{1,255}", one)
    assert re.fullmatch(r"[a-z0-9._-]{1,255}", other)
    assert contents(server) == ["First", "Second"]


def test_a_duplicate_name_gets_a_number(server: ServerUnderTest) -> None:
    for title in ("Code review", "Code, review", "Code: review"):
        add_prompt(server, title)
    assert names(server) == ["code-review", "code-review-2", "code-review-3"]


# Tags


def test_tags_are_stored_in_lower_case_without_duplicates(server: ServerUnderTest) -> None:
    identity = add_prompt(server, "First", tags=["Coding", "coding", "CODING", "Review", "a_b-C"])
    assert sorted(server.data("get_prompt", id=identity)["tags"]) == ["a_b-c", "coding", "review"]
    server.text("update_prompt", id=identity, title="First", content="Words", tags=["NEW", "new"])
    assert server.data("get_prompt", id=identity)["tags"] == ["new"]
    assert server.data("list_tags") == {"tags": [{"name": "new", "prompt_count": 1}], "total": 1}


@pytest.mark.parametrize("profile", ["prompt-store", "all"])
def test_an_update_without_tags_keeps_them(serve: StartServer, profile: str) -> None:
    server = serve(profile)
    identity = add_prompt(server, "First", tags=["one", "two"])
    for given in ({}, {"tags": None}):
        server.text("update_prompt", id=identity, title="First", content="New words", **given)
        assert server.data("get_prompt", id=identity)["tags"] == ["one", "two"]
    server.text("update_prompt", id=identity, title="First", content="New words", tags=[])
    assert server.data("get_prompt", id=identity)["tags"] == []
    assert server.text("list_tags") == '{"tags":[],"total":0}'


def test_a_filter_finds_prompts_with_any_of_the_tags(server: ServerUnderTest) -> None:
    add_prompt(server, "A", tags=["red"])
    add_prompt(server, "B", tags=["red", "blue"])
    add_prompt(server, "C", tags=["green"])
    add_prompt(server, "D")

    def filtered(*tags: str) -> tuple[list[str], list[str]]:
        result = server.data("filter_by_tags", tags=list(tags))
        assert result["total"] == len(result["prompts"])
        return sorted(titles(result)), result["matched_tags"]

    assert filtered("red") == (["A", "B"], ["red"])
    assert filtered("red", "blue") == (["A", "B"], ["red", "blue"])
    assert filtered("green", "blue") == (["B", "C"], ["green", "blue"])
    assert filtered("red", "none") == (["A", "B"], ["red"])
    assert filtered("none") == ([], [])
    assert filtered("RED") == (["A", "B"], ["red"])
    assert filtered("red", "RED") == (["A", "B"], ["red"])
    assert filtered("re%", "r_d", "' OR 1=1") == ([], [])


def test_tags_are_listed_by_use_and_then_by_name(server: ServerUnderTest) -> None:
    for number, tags in enumerate((["zebra", "common"], ["common", "ant"], ["common", "bee"])):
        add_prompt(server, f"Prompt {number}", tags=tags)
    listed = server.data("list_tags")
    assert [(tag["name"], tag["prompt_count"]) for tag in listed["tags"]] == [
        ("common", 3),
        ("ant", 1),
        ("bee", 1),
        ("zebra", 1),
    ]
    assert listed["total"] == 4


def test_a_tag_without_prompts_is_not_listed(server: ServerUnderTest) -> None:
    identity = add_prompt(server, "First", tags=["gone"])
    server.text("delete_prompt", id=identity)
    assert server.data("list_tags") == {"tags": [], "total": 0}


def test_tags_of_other_projects_are_not_counted(serve: StartServer, tmp_path: Path) -> None:
    create_project(tmp_path, "elsewhere")
    add_prompt(serve("prompt-store", "--project", "elsewhere"), "There", tags=["shared", "theirs"])
    here = serve("prompt-store")
    add_prompt(here, "Here", tags=["shared"])
    assert here.data("list_tags") == {"tags": [{"name": "shared", "prompt_count": 1}], "total": 1}
    assert here.data("filter_by_tags", tags=["theirs"])["matched_tags"] == []


# Lists


def test_the_prompt_changed_last_is_listed_first(server: ServerUnderTest) -> None:
    identities = {title: add_prompt(server, title, tags=["all"]) for title in "ABC"}
    listings: list[tuple[str, Json]] = [
        ("list_prompts", {}),
        ("search_prompts", {"query": ""}),
        ("filter_by_tags", {"tags": ["all"]}),
    ]
    for tool, arguments in listings:
        assert titles(server.data(tool, **arguments)) == ["C", "B", "A"]
    server.text("update_prompt", id=identities["A"], title="A", content="New words")
    for tool, arguments in listings:
        assert titles(server.data(tool, **arguments)) == ["A", "C", "B"]
    assert names(server) == ["a", "b", "c"], "the list of the protocol is in the order of creation"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("list_prompts", {}), ("search_prompts", {"query": "word"}), ("filter_by_tags", {"tags": ["all"]})],
)
def test_has_more_is_true_until_the_last_page(server: ServerUnderTest, tool: str, arguments: Json) -> None:
    for number in range(12):
        add_prompt(server, f"Prompt {number:02}", tags=["all"])
    every = titles(server.data(tool, limit=100, **arguments))
    assert every == [f"Prompt {number:02}" for number in reversed(range(12))]

    def page(**window: int) -> tuple[list[str], bool]:
        result = server.data(tool, **arguments, **window)
        assert result["total"] == 12
        assert (result["limit"], result["offset"]) == (window.get("limit", 10), window.get("offset", 0))
        return titles(result), result["has_more"]

    assert page() == (every[:10], True)
    assert page(offset=10) == (every[10:], False)
    assert page(limit=6, offset=5) == (every[5:11], True)
    assert page(limit=6, offset=6) == (every[6:], False)
    assert page(limit=12) == (every, False)
    assert page(offset=11) == (every[11:], False)
    assert page(offset=12) == ([], False)
    assert page(offset=1_000_000) == ([], False)


@pytest.mark.parametrize("character", ["x", "é", "🎒", "\n"])
def test_a_listed_snippet_is_the_first_200_characters(server: ServerUnderTest, character: str) -> None:
    add_prompt(server, "Fits", character * 200)
    add_prompt(server, "Cut", character * 201)
    snippets = {prompt["title"]: prompt["snippet"] for prompt in server.data("list_prompts")["prompts"]}
    assert snippets == {"Fits": character * 200, "Cut": character * 200 + "..."}
