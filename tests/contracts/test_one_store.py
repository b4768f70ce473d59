"""One store behind all contracts: what one of them keeps, the others find, and their clashes are settled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.contracts.replay import (
    HANDSHAKE_VERSIONS,
    REQUESTED_VERSIONS,
    Json,
    Server,
    create_project,
    database,
    initialize,
    satchel,
)

Serve = Callable[..., Server]

NOBODY = "550e8400-e29b-41d4-a716-446655440000"
NOT_FOUND = '{"error":{"code":"NOT_FOUND","message":"Prompt not found"}}'

#: The default profile's tools by toolset: those that only read, and those that write.
TOOLSETS: dict[str, tuple[set[str], set[str]]] = {
    "prompts": (
        {"list_prompts", "get_prompt", "search_prompts", "filter_by_tags", "list_tags"},
        {"create_prompt", "add_prompt", "update_prompt", "delete_prompt"},
    ),
    "resources": (set(), {"create_resource", "update_resource", "delete_resource"}),
    "tasks": (
        {"task_list", "task_get", "task_search", "task_stats"},
        {"task_create", "task_update", "task_complete", "task_delete"},
    ),
    "search": ({"search"}, set()),
    "history": ({"list_changes"}, {"undo_change"}),
}
READERS = set[str]().union(*(readers for readers, _ in TOOLSETS.values()))
WRITERS = set[str]().union(*(writers for _, writers in TOOLSETS.values()))


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Opens servers on one database, each until the test ends."""
    with ExitStack() as stack:

        def opened(profile: str = "satchel", *options: str, **more: Any) -> Server:
            return stack.enter_context(Server(tmp_path, profile, *options, **more))

        yield opened


@pytest.fixture
def server(serve: Serve) -> Server:
    """A server of the default profile."""
    return serve()


def add(server: Server, title: str, content: str = "Words", tags: list[str] | None = None) -> str:
    """Store a prompt as the store's contract has it; its id."""
    identity: str = server.data("add_prompt", title=title, content=content, tags=tags)["id"]
    return identity


def titles(answer: Json) -> list[str]:
    return [prompt["title"] for prompt in answer["prompts"]]


def failure(text: str) -> tuple[str, str]:
    """The code and the message of an error in the store's dialect."""
    error = msgspec.json.decode(text)["error"]
    return error["code"], error["message"]


# Two tools of one name


@pytest.mark.parametrize("tool", ["update_prompt", "delete_prompt"])
def test_the_default_profile_takes_either_address_in_a_plain_schema(server: Server, tool: str) -> None:
    schema = server.tools()[tool]["inputSchema"]
    assert schema["type"] == "object"
    assert schema.keys() <= {"type", "properties", "required", "$defs"}
    assert {"id", "name"} <= schema["properties"].keys()
    assert schema.get("required", []) == []


def test_each_contract_alone_knows_only_its_own_address(serve: Serve) -> None:
    for profile, address, other in [("mcpkg", "name", "id"), ("prompt-store", "id", "name")]:
        tools = serve(profile).tools()
        for tool in ("update_prompt", "delete_prompt"):
            schema = tools[tool]["inputSchema"]
            assert address in schema["required"]
            assert other not in schema["properties"]


def test_a_prompt_addressed_by_id_is_answered_in_json(server: Server) -> None:
    identity = add(server, "First")
    updated = server.data("update_prompt", id=identity, title="Second", content="Other words")
    assert list(updated) == ["id", "title", "updated_at"]
    assert server.text("delete_prompt", id=identity) == f'{{"deleted":true,"id":"{identity}"}}'
    assert server.refusal("update_prompt", id=identity, title="Third", content="Words") == NOT_FOUND
    assert server.refusal("delete_prompt", id=identity) == NOT_FOUND


def test_a_prompt_addressed_by_name_is_answered_in_prose(server: Server) -> None:
    add(server, "First")
    updated = server.text("update_prompt", name="first", content="Other words")
    assert updated == "Updated prompt 'first' in project 'default'"
    assert server.text("delete_prompt", name="first") == "Deleted prompt 'first' from project 'default'"
    gone = "Error: Prompt 'first' does not exist in project 'default'"
    assert server.refusal("update_prompt", name="first", content="Words") == gone
    assert server.refusal("delete_prompt", name="first") == gone


@pytest.mark.parametrize(
    ("tool", "change"), [("update_prompt", {"content": "Changed"}), ("delete_prompt", {})]
)
def test_neither_address_or_both_is_explained_and_changes_nothing(
    server: Server, tool: str, change: Json
) -> None:
    identity = add(server, "First")
    neither = "Error: Give either id or name: which prompt do you mean?"
    both = "Error: Give either id or name, not both"
    assert server.refusal(tool, **change) == neither
    assert server.refusal(tool, id=None, name=None, **change) == neither
    assert server.refusal(tool, id=identity, name="first", **change) == both
    assert server.data("get_prompt", id=identity)["content"] == "Words"


def test_an_address_that_is_null_is_not_given(server: Server) -> None:
    identity = add(server, "First")
    assert server.text("update_prompt", id=None, name="first", content="New").startswith("Updated prompt")
    assert server.text("delete_prompt", id=identity, name=None).startswith('{"deleted":true')


def test_by_id_the_default_profile_changes_only_what_is_given(server: Server) -> None:
    identity = add(server, "First", tags=["kept"])
    server.text("update_prompt", id=identity, title="Second")
    server.text("update_prompt", id=identity, content="Other words")
    prompt = server.data("get_prompt", id=identity)
    assert (prompt["title"], prompt["content"], prompt["tags"]) == ("Second", "Other words", ["kept"])
    code, _ = failure(server.refusal("update_prompt", id=identity))
    assert code == "INVALID_INPUT"


def test_the_store_alone_wants_title_and_content(serve: Serve) -> None:
    store = serve("prompt-store")
    identity = add(store, "First")
    assert failure(store.refusal("update_prompt", id=identity)) == (
        "INVALID_INPUT",
        "Title is required; Content is required",
    )


# Through one contract in, through another out


class ByName:
    """The mcpkg contract's way with a prompt."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def make(self, content: str) -> None:
        self.server.text("create_prompt", name="crossing", content=content)

    def update(self, content: str) -> None:
        self.server.text("update_prompt", name="crossing", content=content)

    def delete(self) -> None:
        self.server.text("delete_prompt", name="crossing")

    def read(self) -> list[str]:
        """The contents of all prompts there are."""
        names = [prompt["name"] for prompt in self.server.request("prompts/list")["prompts"]]
        prompts = [self.server.request("prompts/get", {"name": name}) for name in names]
        return [prompt["messages"][0]["content"]["text"] for prompt in prompts]


class ById:
    """The prompt store's way with a prompt."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def make(self, content: str) -> None:
        add(self.server, "crossing", content)

    def update(self, content: str) -> None:
        (identity,) = self._found()
        self.server.text("update_prompt", id=identity, title="crossing", content=content)

    def delete(self) -> None:
        (identity,) = self._found()
        self.server.text("delete_prompt", id=identity)

    def read(self) -> list[str]:
        """The contents of all prompts there are."""
        listed = [prompt["id"] for prompt in self.server.data("list_prompts")["prompts"]]
        assert listed == self._found()
        return [self.server.data("get_prompt", id=identity)["content"] for identity in listed]

    def _found(self) -> list[str]:
        found = self.server.data("search_prompts", query="crossing")["prompts"]
        return [prompt["id"] for prompt in found]


WAYS = ["mcpkg by name", "prompt-store by id", "satchel by name", "satchel by id"]


@pytest.mark.parametrize("maker", WAYS)
@pytest.mark.parametrize("changer", WAYS)
def test_a_prompt_made_one_way_is_found_changed_and_deleted_the_other(
    serve: Serve, maker: str, changer: str
) -> None:
    servers = {profile: serve(profile) for profile in ("mcpkg", "prompt-store", "satchel")}
    ways = {way: (ByName if way.endswith("name") else ById)(servers[way.partition(" ")[0]]) for way in WAYS}
    ways[maker].make("First words")
    assert [way.read() for way in ways.values()] == [["First words"]] * 4
    ways[changer].update("Second words")
    assert [way.read() for way in ways.values()] == [["Second words"]] * 4
    ways[changer].delete()
    assert [way.read() for way in ways.values()] == [[]] * 4
    ways[maker].make("Third words")
    assert [way.read() for way in ways.values()] == [["Third words"]] * 4


def test_names_and_titles_are_taken_for_every_contract(serve: Serve) -> None:
    mcpkg, store = serve("mcpkg"), serve("prompt-store")
    mcpkg.text("create_prompt", name="review", content="Words")
    assert failure(store.refusal("add_prompt", title="review", content="Words"))[0] == "DUPLICATE_TITLE"
    add(store, "Plan a trip")
    taken = mcpkg.refusal("create_prompt", name="plan-a-trip", content="Words")
    assert taken == "Error: Prompt 'plan-a-trip' already exists in project 'default'"


def test_a_prompt_created_by_name_has_a_title_of_its_own(serve: Serve) -> None:
    mcpkg, store = serve("mcpkg"), serve("prompt-store")
    mcpkg.text("create_prompt", name="one", content="Words")
    (one,) = store.data("list_prompts")["prompts"]
    assert one["title"] == "one"
    store.text("update_prompt", id=one["id"], title="two", content="Words")
    mcpkg.text("create_prompt", name="two", content="Words")
    assert titles(store.data("list_prompts")) == ["two (2)", "two"]
    mcpkg.text("create_prompt", name="n" * 255, content="Words")
    assert titles(store.data("list_prompts"))[0] == "n" * 200


def test_a_new_title_leaves_the_name_alone(serve: Serve) -> None:
    mcpkg, store = serve("mcpkg"), serve("prompt-store")
    identity = add(store, "Old title")
    store.text("update_prompt", id=identity, title="New title", content="Words")
    assert [prompt["name"] for prompt in mcpkg.request("prompts/list")["prompts"]] == ["old-title"]


def test_a_description_and_tags_survive_changes_by_the_contract_that_does_not_know_them(serve: Serve) -> None:
    mcpkg, store = serve("mcpkg"), serve("prompt-store")
    mcpkg.text("create_prompt", name="first", content="Words", description="About it")
    (prompt,) = store.data("list_prompts")["prompts"]
    store.text("update_prompt", id=prompt["id"], title="first", content="Other words", tags=["kept"])
    assert mcpkg.request("prompts/get", {"name": "first"})["description"] == "About it"
    mcpkg.text("update_prompt", name="first", content="More words")
    assert store.data("get_prompt", id=prompt["id"])["tags"] == ["kept"]


def test_each_project_has_its_own_prompts(serve: Serve, tmp_path: Path) -> None:
    create_project(tmp_path, "elsewhere")
    here, there = serve("mcpkg"), serve("prompt-store", "--project", "elsewhere")
    here.text("create_prompt", name="same", content="Here")
    identity = add(there, "same", "There")
    assert there.data("search_prompts", query="same")["total"] == 1
    assert ByName(here).read() == ["Here"]
    assert there.data("get_prompt", id=identity)["content"] == "There"
    assert serve("satchel").refusal("get_prompt", id=identity) == NOT_FOUND


def test_tasks_are_the_same_in_every_profile_that_has_them(serve: Serve) -> None:
    tasks, default = serve("tasks"), serve()
    made = tasks.data("task_create", title="A task")
    assert default.data("task_complete", task_id=made["id"])["completed"] is True
    assert tasks.data("task_get", task_id=made["id"])["completed"] is True
    tasks.text("task_delete", task_id=made["id"])
    assert default.refusal("task_get", task_id=made["id"]) == f"Task {made['id']} not found"
    assert default.data("task_create", title="Another")["id"] > made["id"], "ids never come back"


# Names out of titles


def names(server: Server) -> list[str]:
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
        ("x" * 200, "x" * 200),
    ],
)
def test_a_prompt_added_by_title_gets_a_name_out_of_it(server: Server, title: str, name: str) -> None:
    add(server, title)
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
def test_every_title_gets_a_valid_name_that_nobody_else_has(server: Server, first: str, second: str) -> None:
    add(server, first, "First")
    add(server, second, "Second")
    one, other = names(server)
    assert one != other
    assert re.fullmatch(r"[a-z0-9._-]{1,255}", one)
    assert re.fullmatch(r"[a-z0-9._-]{1,255}", other)
    assert ByName(server).read() == ["First", "Second"]


def test_a_name_that_is_taken_gets_a_number(server: Server) -> None:
    for title in ("Code review", "Code, review", "Code: review"):
        add(server, title)
    assert names(server) == ["code-review", "code-review-2", "code-review-3"]


# Tags


def test_tags_are_kept_in_lower_case_and_once(server: Server) -> None:
    identity = add(server, "First", tags=["Coding", "coding", "CODING", "Review", "a_b-C"])
    assert sorted(server.data("get_prompt", id=identity)["tags"]) == ["a_b-c", "coding", "review"]
    server.text("update_prompt", id=identity, title="First", content="Words", tags=["NEW", "new"])
    assert server.data("get_prompt", id=identity)["tags"] == ["new"]
    assert server.data("list_tags") == {"tags": [{"name": "new", "prompt_count": 1}], "total": 1}


@pytest.mark.parametrize("profile", ["prompt-store", "satchel"])
def test_tags_stay_unless_they_are_given(serve: Serve, profile: str) -> None:
    server = serve(profile)
    identity = add(server, "First", tags=["one", "two"])
    for given in ({}, {"tags": None}):
        server.text("update_prompt", id=identity, title="First", content="New words", **given)
        assert server.data("get_prompt", id=identity)["tags"] == ["one", "two"]
    server.text("update_prompt", id=identity, title="First", content="New words", tags=[])
    assert server.data("get_prompt", id=identity)["tags"] == []
    assert server.text("list_tags") == '{"tags":[],"total":0}'


def test_a_filter_finds_prompts_with_any_of_the_tags(server: Server) -> None:
    add(server, "A", tags=["red"])
    add(server, "B", tags=["red", "blue"])
    add(server, "C", tags=["green"])
    add(server, "D")

    def filtered(*tags: str) -> tuple[list[str], list[str]]:
        answer = server.data("filter_by_tags", tags=list(tags))
        assert answer["total"] == len(answer["prompts"])
        return sorted(titles(answer)), answer["matched_tags"]

    assert filtered("red") == (["A", "B"], ["red"])
    assert filtered("red", "blue") == (["A", "B"], ["red", "blue"])
    assert filtered("green", "blue") == (["B", "C"], ["green", "blue"])
    assert filtered("red", "none") == (["A", "B"], ["red"])
    assert filtered("none") == ([], [])
    assert filtered("RED") == (["A", "B"], ["red"])
    assert filtered("red", "RED") == (["A", "B"], ["red"])
    assert filtered("re%", "r_d", "' OR 1=1") == ([], [])


def test_tags_are_listed_by_use_and_then_by_name(server: Server) -> None:
    for number, tags in enumerate((["zebra", "common"], ["common", "ant"], ["common", "bee"])):
        add(server, f"Prompt {number}", tags=tags)
    listed = server.data("list_tags")
    assert [(tag["name"], tag["prompt_count"]) for tag in listed["tags"]] == [
        ("common", 3),
        ("ant", 1),
        ("bee", 1),
        ("zebra", 1),
    ]
    assert listed["total"] == 4


def test_a_tag_that_nobody_carries_any_more_is_not_listed(server: Server) -> None:
    identity = add(server, "First", tags=["gone"])
    server.text("delete_prompt", id=identity)
    assert server.data("list_tags") == {"tags": [], "total": 0}


def test_tags_of_other_projects_are_not_counted(serve: Serve, tmp_path: Path) -> None:
    create_project(tmp_path, "elsewhere")
    add(serve("prompt-store", "--project", "elsewhere"), "There", tags=["shared", "theirs"])
    here = serve("prompt-store")
    add(here, "Here", tags=["shared"])
    assert here.data("list_tags") == {"tags": [{"name": "shared", "prompt_count": 1}], "total": 1}
    assert here.data("filter_by_tags", tags=["theirs"])["matched_tags"] == []


# Lists


def test_the_prompt_changed_last_is_listed_first(server: Server) -> None:
    identities = {title: add(server, title, tags=["all"]) for title in "ABC"}
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
    assert names(server) == ["a", "b", "c"], "the protocol's own list is by creation"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("list_prompts", {}), ("search_prompts", {"query": "word"}), ("filter_by_tags", {"tags": ["all"]})],
)
def test_there_is_more_until_the_last_prompt_was_shown(server: Server, tool: str, arguments: Json) -> None:
    for number in range(12):
        add(server, f"Prompt {number:02}", tags=["all"])
    every = titles(server.data(tool, limit=100, **arguments))
    assert every == [f"Prompt {number:02}" for number in reversed(range(12))]

    def page(**window: int) -> tuple[list[str], bool]:
        answer = server.data(tool, **arguments, **window)
        assert answer["total"] == 12
        assert (answer["limit"], answer["offset"]) == (window.get("limit", 10), window.get("offset", 0))
        return titles(answer), answer["has_more"]

    assert page() == (every[:10], True)
    assert page(offset=10) == (every[10:], False)
    assert page(limit=6, offset=5) == (every[5:11], True)
    assert page(limit=6, offset=6) == (every[6:], False)
    assert page(limit=12) == (every, False)
    assert page(offset=11) == (every[11:], False)
    assert page(offset=12) == ([], False)
    assert page(offset=1_000_000) == ([], False)


@pytest.mark.parametrize("character", ["x", "é", "🎒", "\n"])
def test_a_listed_snippet_is_the_first_200_characters(server: Server, character: str) -> None:
    add(server, "Fits", character * 200)
    add(server, "Cut", character * 201)
    snippets = {prompt["title"]: prompt["snippet"] for prompt in server.data("list_prompts")["prompts"]}
    assert snippets == {"Fits": character * 200, "Cut": character * 200 + "..."}


# Search

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
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on a store that nobody changes; a title says nothing but the number of its prompt."""
    with Server(tmp_path_factory.mktemp("library"), "prompt-store") as server:
        for number, content in enumerate(CORPUS):
            add(server, f"#{number}", content)
        add(server, "Needle in the TITLE", "Hay")
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
def test_a_search_finds_its_query_as_plain_text(library: Server, query: str, found: list[str]) -> None:
    answer = library.data("search_prompts", query=query, limit=100)
    assert sorted(prompt["snippet"] for prompt in answer["prompts"]) == sorted(found)
    assert (answer["total"], answer["query"], answer["has_more"]) == (len(found), query, False)


def test_an_empty_query_lists_everything(library: Server) -> None:
    found, listed = library.data("search_prompts", query=""), library.data("list_prompts")
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
def test_a_found_snippet_is_the_neighbourhood_of_the_first_match(
    server: Server, content: str, is_cut_left: bool, is_cut_right: bool
) -> None:
    add(server, "Hay", content)
    (prompt,) = server.data("search_prompts", query="Needle")["prompts"]
    snippet = prompt["snippet"]
    assert "needle" in snippet.lower()
    assert snippet.startswith("...") is is_cut_left
    assert snippet.endswith("...") is is_cut_right
    shown = snippet.removeprefix("...").removesuffix("...")
    assert shown in content
    assert len(shown) <= 200
    first = re.search("needle", content, re.IGNORECASE)
    assert first
    assert content.index(shown) <= first.start() < first.end() <= content.index(shown) + len(shown)


def test_a_match_in_the_title_shows_the_beginning(server: Server) -> None:
    add(server, "Needle", "x" * 300)
    (prompt,) = server.data("search_prompts", query="needle")["prompts"]
    assert prompt["snippet"] == "x" * 200 + "..."


def test_a_search_follows_changes(server: Server) -> None:
    identity = add(server, "First", "An old straße")
    server.text("update_prompt", id=identity, content="A new word")
    assert server.data("search_prompts", query="STRASSE")["total"] == 0
    assert server.data("search_prompts", query="NEW")["total"] == 1
    server.text("delete_prompt", id=identity)
    assert server.data("search_prompts", query="NEW")["total"] == 0


# Tasks


def ids(tasks: list[Json]) -> list[int]:
    return [task["id"] for task in tasks]


def test_urgent_tasks_come_first_and_older_ones_before_newer(server: Server) -> None:
    for priority in (3, 5, 1, 5, 3):
        server.text("task_create", title="Same", notes="Same", priority=priority)
    order = [2, 4, 1, 5, 3]
    assert ids(server.data("task_list")) == order
    assert ids(server.data("task_search", query="same")) == order
    assert ids(server.data("task_list", limit=2, offset=1)) == order[1:3]
    assert ids(server.data("task_list", offset=5)) == []
    server.text("task_update", task_id=3, priority=4)
    assert ids(server.data("task_list")) == [2, 4, 3, 1, 5]


def test_completed_tasks_are_listed_only_on_request_and_always_searched(server: Server) -> None:
    for title in ("Open", "Done"):
        server.text("task_create", title=title, project="Home", priority=2)
    done = server.data("task_complete", task_id=2)
    assert done["completed_at"] == done["updated_at"]
    assert ids(server.data("task_list")) == [1]
    assert ids(server.data("task_list", show_completed=True)) == [1, 2]
    assert ids(server.data("task_list", project="Home", priority=2, show_completed=True)) == [1, 2]
    assert ids(server.data("task_list", priority=3, show_completed=True)) == []
    assert ids(server.data("task_search", query="done")) == [2]


def test_a_task_search_looks_where_it_is_told_to(server: Server) -> None:
    server.text("task_create", title="Buy MILK", notes="At the shop")
    server.text("task_create", title="Call home", notes="About 100% milk_")
    found = {
        fields: ids(server.data("task_search", query="milk", fields=fields))
        for fields in ("title", "notes", "both")
    }
    assert found == {"title": [1], "notes": [2], "both": [1, 2]}
    assert ids(server.data("task_search", query="milk")) == [1, 2]
    for query, expected in {"%": [2], "k_": [2], "_": [2], '"': [], "NOT milk": [], "0% MILK_": [2]}.items():
        assert ids(server.data("task_search", query=query)) == expected, query


def test_a_new_task_has_the_contracts_defaults(server: Server) -> None:
    task = server.data("task_create", title="A task")
    assert task | {"created_at": "", "updated_at": ""} == {
        "id": 1,
        "user_id": "dev-user",
        "title": "A task",
        "project": None,
        "priority": 3,
        "energy": "medium",
        "time_estimate": "1hr",
        "notes": None,
        "due_date": None,
        "completed": False,
        "completed_at": None,
        "created_at": "",
        "updated_at": "",
    }
    assert task["created_at"] == task["updated_at"]


def test_statistics_of_nothing_are_zero(server: Server) -> None:
    stats = server.data("task_stats")
    assert list(stats) == ["by_project", "by_priority", "by_status", "total", "completed", "completion_rate"]
    assert stats["by_project"] == {}
    assert (stats["total"], stats["completed"], stats["completion_rate"]) == (0, 0, 0)


@pytest.fixture
def busy(server: Server) -> Server:
    """Three tasks, one of them completed, one without a project."""
    server.text("task_create", title="One", project="Home", priority=5)
    server.text("task_create", title="Two", project="Home")
    server.text("task_create", title="Three")
    server.text("task_complete", task_id=3)
    return server


def test_statistics_count_all_tasks(busy: Server) -> None:
    stats = busy.data("task_stats")
    assert list(stats) == ["by_project", "by_priority", "by_status", "total", "completed", "completion_rate"]
    assert stats["by_project"] == {"Home": 2, "(no project)": 1}
    assert {priority: count for priority, count in stats["by_priority"].items() if count} == {"3": 2, "5": 1}
    assert stats["by_status"] == {"pending": 2, "completed": 1}
    assert (stats["total"], stats["completed"], stats["completion_rate"]) == (3, 1, 33.33)


def test_a_project_that_is_called_no_project_is_counted_in(busy: Server) -> None:
    busy.text("task_create", title="Four", project="(no project)")
    assert busy.data("task_stats")["by_project"] == {"Home": 2, "(no project)": 2}


@pytest.mark.parametrize("group", ["project", "priority", "status"])
def test_statistics_can_be_grouped_by_one_thing(busy: Server, group: str) -> None:
    stats, everything = busy.data("task_stats", group_by=group), busy.data("task_stats")
    assert list(stats) == [f"by_{group}", "total", "completed", "completion_rate"]
    assert stats.items() <= everything.items()


def test_the_completion_rate_is_a_percentage_with_two_decimals(busy: Server) -> None:
    rates = [busy.data("task_stats")["completion_rate"]]
    for task in (1, 2):
        busy.text("task_complete", task_id=task)
        rates.append(busy.data("task_stats")["completion_rate"])
    assert rates == [33.33, 66.67, 100]


# The default profile


@pytest.mark.parametrize("requested", REQUESTED_VERSIONS)
def test_a_known_version_is_echoed_and_any_other_gets_the_newest(serve: Serve, requested: str | None) -> None:
    result = serve(hello=initialize(requested)).introduction["result"]
    assert result["protocolVersion"] == (
        requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    )
    assert result["serverInfo"]["name"] == "satchel"
    assert {"tools", "prompts", "resources"} <= result["capabilities"].keys()


@pytest.mark.parametrize(("profile", "codes"), [("satchel", (-32002, -32602)), ("mcpkg", (-32602, -32602))])
def test_a_missing_resource_has_the_code_of_its_profile_and_revision(
    serve: Serve, profile: str, codes: tuple[int, int]
) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    server = serve(profile)
    by_handshake = server.error("resources/read", {"uri": "file:///none"})
    by_request = server.error("resources/read", {"uri": "file:///none", "_meta": meta})
    assert (by_handshake["code"], by_request["code"]) == codes
    for error in (by_handshake, by_request):
        assert error["message"] == "Resource 'file:///none' not found in project 'default'"
        assert error.get("data") == ({"uri": "file:///none"} if profile == "satchel" else None)


def test_the_default_profile_has_every_tool_once(server: Server) -> None:
    tools = server.tools()
    assert tools.keys() == READERS | WRITERS
    assert "nextCursor" not in server.request("tools/list")


@pytest.mark.parametrize(
    ("options", "env"),
    [(["--read-only"], {}), ([], {"SATCHEL_READ_ONLY": "1"})],
    ids=["option", "environment"],
)
def test_read_only_hides_every_tool_that_writes(
    serve: Serve, options: list[str], env: dict[str, str]
) -> None:
    identity = add(serve(), "First")
    server = serve("satchel", *options, env=env)
    assert server.tools().keys() == READERS
    for tool in WRITERS:
        error = server.error("tools/call", {"name": tool, "arguments": {"id": identity}})
        assert error == {"code": -32602, "message": f"Unknown tool: {tool}"}
    assert server.data("get_prompt", id=identity)["title"] == "First"
    assert ByName(server).read() == ["Words"]


@pytest.mark.parametrize("profile", ["mcpkg", "prompt-store", "tasks"])
def test_read_only_holds_in_every_profile(serve: Serve, profile: str) -> None:
    everything, readable = serve(profile).tools(), serve(profile, "--read-only").tools()
    assert readable.keys() == everything.keys() & READERS


def test_a_tool_says_whether_it_only_reads(server: Server) -> None:
    hints = {name: tool["annotations"]["readOnlyHint"] for name, tool in server.tools().items()}
    assert {name for name, hint in hints.items() if hint} == READERS


@pytest.mark.parametrize("toolset", TOOLSETS)
def test_a_toolset_narrows_the_tools(serve: Serve, toolset: str) -> None:
    readers, writers = TOOLSETS[toolset]
    server = serve("satchel", "--toolsets", toolset)
    assert server.tools().keys() == readers | writers
    for tool in (READERS | WRITERS) - readers - writers:
        error = server.error("tools/call", {"name": tool, "arguments": {}})
        assert error == {"code": -32602, "message": f"Unknown tool: {tool}"}


def test_toolsets_add_up_and_can_be_read_only(serve: Serve) -> None:
    options = ("--toolsets", "tasks,search")
    tasks, writers = TOOLSETS["tasks"]
    assert serve("satchel", *options).tools().keys() == tasks | writers | {"search"}
    assert serve("satchel", *options, "--read-only").tools().keys() == tasks | {"search"}
    assert serve(env={"SATCHEL_TOOLSETS": "search"}).tools().keys() == {"search"}


def test_an_unknown_toolset_is_refused_with_a_hint(tmp_path: Path) -> None:
    done = satchel("serve", "--toolsets", "tasks,cooking", *database(tmp_path), status=2)
    assert done.stdout == ""
    assert "cooking" in done.stderr
    assert all(toolset in done.stderr for toolset in TOOLSETS)
    assert re.search(r"^hint: ", done.stderr, re.MULTILINE)


@pytest.mark.parametrize("profile", ["satchel", "mcpkg", "prompt-store", "tasks"])
def test_a_missing_project_is_an_error_with_a_hint(tmp_path: Path, profile: str) -> None:
    done = satchel("serve", "--profile", profile, "--project", "nowhere", *database(tmp_path), status=3)
    assert done.stdout == ""
    assert done.stderr.startswith("error: there is no project 'nowhere' in ")
    assert re.search(r"^hint: ", done.stderr, re.MULTILINE)
    satchel("project", "create", "nowhere", *database(tmp_path))
    with Server(tmp_path, profile, "--project", "nowhere") as server:
        assert server.tools()
