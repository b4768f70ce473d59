"""All contracts use one store: each finds what another stores, and tools of the same name are merged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contracts.contract_replay import (
    Json,
    ServerUnderTest,
    StartServer,
    add_prompt,
    contents,
    create_project,
    failure,
    titles,
)

UNKNOWN_ID = "550e8400-e29b-41d4-a716-446655440000"
NOT_FOUND = '{"error":{"code":"NOT_FOUND","message":"Prompt not found"}}'

# Tools with the same name


@pytest.mark.parametrize("tool", ["update_prompt", "delete_prompt"])
def test_the_default_profile_accepts_id_or_name_in_a_plain_schema(server: ServerUnderTest, tool: str) -> None:
    schema = server.tools()[tool]["inputSchema"]
    assert schema["type"] == "object"
    assert schema.keys() <= {"type", "properties", "required", "$defs"}
    assert {"id", "name"} <= schema["properties"].keys()
    assert schema.get("required", []) == []


def test_each_contract_accepts_only_its_own_address(serve: StartServer) -> None:
    for profile, address, other in [("mcpkg", "name", "id"), ("prompt-store", "id", "name")]:
        tools = serve(profile).tools()
        for tool in ("update_prompt", "delete_prompt"):
            schema = tools[tool]["inputSchema"]
            assert address in schema["required"]
            assert other not in schema["properties"]


def test_a_prompt_addressed_by_id_has_json_results(server: ServerUnderTest) -> None:
    identity = add_prompt(server, "First")
    updated = server.data("update_prompt", id=identity, title="Second", content="Other words")
    assert list(updated) == ["id", "title", "updated_at"]
    assert server.text("delete_prompt", id=identity) == f'{{"deleted":true,"id":"{identity}"}}'
    assert server.refusal("update_prompt", id=identity, title="Third", content="Words") == NOT_FOUND
    assert server.refusal("delete_prompt", id=identity) == NOT_FOUND


def test_a_prompt_addressed_by_name_has_prose_results(server: ServerUnderTest) -> None:
    add_prompt(server, "First")
    updated = server.text("update_prompt", name="first", content="Other words")
    assert updated == "Updated prompt 'first' in project 'default'"
    assert server.text("delete_prompt", name="first") == "Deleted prompt 'first' from project 'default'"
    gone = "Error: Prompt 'first' does not exist in project 'default'"
    assert server.refusal("update_prompt", name="first", content="Words") == gone
    assert server.refusal("delete_prompt", name="first") == gone


@pytest.mark.parametrize(
    ("tool", "change"), [("update_prompt", {"content": "Changed"}), ("delete_prompt", {})]
)
def test_neither_address_or_both_is_an_error_and_changes_nothing(
    server: ServerUnderTest, tool: str, change: Json
) -> None:
    identity = add_prompt(server, "First")
    neither = "Error: Either id or name is required"
    both = "Error: Give either id or name, not both"
    assert server.refusal(tool, **change) == neither
    assert server.refusal(tool, id=None, name=None, **change) == neither
    assert server.refusal(tool, id=identity, name="first", **change) == both
    assert server.data("get_prompt", id=identity)["content"] == "Words"


def test_a_null_address_counts_as_omitted(server: ServerUnderTest) -> None:
    identity = add_prompt(server, "First")
    assert server.text("update_prompt", id=None, name="first", content="New").startswith("Updated prompt")
    assert server.text("delete_prompt", id=identity, name=None).startswith('{"deleted":true')


def test_an_update_by_id_in_the_default_profile_changes_only_given_fields(server: ServerUnderTest) -> None:
    identity = add_prompt(server, "First", tags=["kept"])
    server.text("update_prompt", id=identity, title="Second")
    server.text("update_prompt", id=identity, content="Other words")
    prompt = server.data("get_prompt", id=identity)
    assert (prompt["title"], prompt["content"], prompt["tags"]) == ("Second", "Other words", ["kept"])
    code, _ = failure(server.refusal("update_prompt", id=identity))
    assert code == "INVALID_INPUT"


def test_the_prompt_store_profile_requires_title_and_content(serve: StartServer) -> None:
    store = serve("prompt-store")
    identity = add_prompt(store, "First")
    assert failure(store.refusal("update_prompt", id=identity)) == (
        "INVALID_INPUT",
        "title is required; content is required",
    )


# Written with one contract, read with another


class PromptByName:
    """Uses a prompt as the mcpkg contract does, by name."""

    def __init__(self, server: ServerUnderTest) -> None:
        self.server = server

    def create(self, content: str) -> None:
        self.server.text("create_prompt", name="crossing", content=content)

    def update(self, content: str) -> None:
        self.server.text("update_prompt", name="crossing", content=content)

    def delete(self) -> None:
        self.server.text("delete_prompt", name="crossing")

    def read(self) -> list[str]:
        return contents(self.server)


class PromptById:
    """Uses a prompt as the prompt-store contract does, by id."""

    def __init__(self, server: ServerUnderTest) -> None:
        self.server = server

    def create(self, content: str) -> None:
        add_prompt(self.server, "crossing", content)

    def update(self, content: str) -> None:
        (identity,) = self._ids()
        self.server.text("update_prompt", id=identity, title="crossing", content=content)

    def delete(self) -> None:
        (identity,) = self._ids()
        self.server.text("delete_prompt", id=identity)

    def read(self) -> list[str]:
        """Return the contents of all prompts."""
        listed = [prompt["id"] for prompt in self.server.data("list_prompts")["prompts"]]
        assert listed == self._ids()
        return [self.server.data("get_prompt", id=identity)["content"] for identity in listed]

    def _ids(self) -> list[str]:
        found = self.server.data("search_prompts", query="crossing")["prompts"]
        return [prompt["id"] for prompt in found]


ADDRESSINGS = ["mcpkg by name", "prompt-store by id", "all by name", "all by id"]


@pytest.mark.parametrize("creator", ADDRESSINGS)
@pytest.mark.parametrize("changer", ADDRESSINGS)
def test_a_prompt_created_by_one_contract_is_read_changed_and_deleted_by_another(
    serve: StartServer, creator: str, changer: str
) -> None:
    servers = {profile: serve(profile) for profile in ("mcpkg", "prompt-store", "all")}
    stores = {
        addressing: (PromptByName if addressing.endswith("name") else PromptById)(
            servers[addressing.partition(" ")[0]]
        )
        for addressing in ADDRESSINGS
    }
    stores[creator].create("First words")
    assert [addressing.read() for addressing in stores.values()] == [["First words"]] * 4
    stores[changer].update("Second words")
    assert [addressing.read() for addressing in stores.values()] == [["Second words"]] * 4
    stores[changer].delete()
    assert [addressing.read() for addressing in stores.values()] == [[]] * 4
    stores[creator].create("Third words")
    assert [addressing.read() for addressing in stores.values()] == [["Third words"]] * 4


def test_names_and_titles_are_unique_across_contracts(serve: StartServer) -> None:
    mcpkg, store = serve("mcpkg"), serve("prompt-store")
    mcpkg.text("create_prompt", name="review", content="Words")
    assert failure(store.refusal("add_prompt", title="review", content="Words"))[0] == "DUPLICATE_TITLE"
    add_prompt(store, "Plan a trip")
    taken = mcpkg.refusal("create_prompt", name="plan-a-trip", content="Words")
    assert taken == "Error: Prompt 'plan-a-trip' already exists in project 'default'"


def test_a_prompt_created_by_name_gets_a_unique_title(serve: StartServer) -> None:
    mcpkg, store = serve("mcpkg"), serve("prompt-store")
    mcpkg.text("create_prompt", name="one", content="Words")
    (one,) = store.data("list_prompts")["prompts"]
    assert one["title"] == "one"
    store.text("update_prompt", id=one["id"], title="two", content="Words")
    mcpkg.text("create_prompt", name="two", content="Words")
    assert titles(store.data("list_prompts")) == ["two (2)", "two"]
    mcpkg.text("create_prompt", name="n" * 255, content="Words")
    assert titles(store.data("list_prompts"))[0] == "n" * 200


def test_a_new_title_does_not_change_the_name(serve: StartServer) -> None:
    mcpkg, store = serve("mcpkg"), serve("prompt-store")
    identity = add_prompt(store, "Old title")
    store.text("update_prompt", id=identity, title="New title", content="Words")
    assert [prompt["name"] for prompt in mcpkg.request("prompts/list")["prompts"]] == ["old-title"]


def test_an_update_keeps_fields_that_its_contract_does_not_know(
    serve: StartServer,
) -> None:
    mcpkg, store = serve("mcpkg"), serve("prompt-store")
    mcpkg.text("create_prompt", name="first", content="Words", description="About it")
    (prompt,) = store.data("list_prompts")["prompts"]
    store.text("update_prompt", id=prompt["id"], title="first", content="Other words", tags=["kept"])
    assert mcpkg.request("prompts/get", {"name": "first"})["description"] == "About it"
    mcpkg.text("update_prompt", name="first", content="More words")
    assert store.data("get_prompt", id=prompt["id"])["tags"] == ["kept"]


def test_each_project_has_its_own_prompts(serve: StartServer, tmp_path: Path) -> None:
    create_project(tmp_path, "elsewhere")
    here, there = serve("mcpkg"), serve("prompt-store", "--project", "elsewhere")
    here.text("create_prompt", name="same", content="Here")
    identity = add_prompt(there, "same", "There")
    assert there.data("search_prompts", query="same")["total"] == 1
    assert PromptByName(here).read() == ["Here"]
    assert there.data("get_prompt", id=identity)["content"] == "There"
    assert serve("all").refusal("get_prompt", id=identity) == NOT_FOUND


def test_tasks_are_the_same_in_every_profile_that_has_them(serve: StartServer) -> None:
    tasks, default = serve("tasks"), serve()
    made = tasks.data("task_create", title="A task")
    assert default.data("task_complete", task_id=made["id"])["completed"] is True
    assert tasks.data("task_get", task_id=made["id"])["completed"] is True
    tasks.text("task_delete", task_id=made["id"])
    assert default.refusal("task_get", task_id=made["id"]) == f"Task {made['id']} not found"
    assert default.data("task_create", title="Another")["id"] > made["id"], "ids are never reused"


def test_the_search_looks_at_names_titles_tags_descriptions_uris_and_contents(serve: StartServer) -> None:
    server = serve()
    prompt = {"name": "walrus", "content": "zebra {{ x }}", "description": "lizard"}
    server.text("create_prompt", **prompt, arguments=[{"name": "x", "description": "an argument"}])
    server.text("update_prompt", name="walrus", title="Ostrich", tags=["gecko"])
    resource = {"name": "walrus", "title": "Ostrich", "content": "zebra", "uri": "file:///penguin"}
    server.text("create_resource", **resource, description="lizard")
    server.text("task_create", title="Ostrich", notes="zebra")
    found: dict[str, list[str]] = {}
    for word in ("walrus", "ostriches", "zebra", "lizards", "gecko", "penguin"):
        for hit in server.data("search", query=word)["hits"]:
            found.setdefault(hit["kind"], []).append(word)
    assert found == {
        "prompt": ["walrus", "ostriches", "zebra", "lizards", "gecko"],
        "resource": ["walrus", "ostriches", "zebra", "lizards", "penguin"],
        "task": ["ostriches", "zebra"],
    }
