"""Versions and error codes of profiles, read-only servers, and toolsets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contracts.contract_replay import (
    HANDSHAKE_VERSIONS,
    REQUESTED_VERSIONS,
    ServerUnderTest,
    StartServer,
    add_prompt,
    contents,
    database,
    dittybag,
    initialize,
)

#: The tools of the profile `all` by toolset: those that read, and those that write.
TOOLSETS: dict[str, tuple[set[str], set[str]]] = {
    "prompts": (
        {"list_prompts", "get_prompt", "search_prompts", "filter_by_tags", "list_tags", "read", "use_prompt"},
        {"create_prompt", "add_prompt", "update_prompt", "delete_prompt"},
    ),
    "resources": ({"read"}, {"create_resource", "update_resource", "delete_resource"}),
    "tasks": (
        {"task_list", "task_get", "task_search", "task_stats", "read"},
        {
            *("task_create", "task_update", "task_complete", "task_delete"),
            *("task_add", "task_next", "task_done", "task_release"),
        },
    ),
    "search": ({"context", "search", "read"}, set()),
    "history": ({"list_changes", "read"}, {"undo_change"}),
}
READING_TOOLS = set[str]().union(*(readers for readers, _ in TOOLSETS.values()))
WRITING_TOOLS = set[str]().union(*(writers for _, writers in TOOLSETS.values()))


# The default profile


@pytest.mark.parametrize("requested", REQUESTED_VERSIONS)
def test_a_known_version_is_echoed_and_any_other_gets_the_newest(
    serve: StartServer, requested: str | None
) -> None:
    result = serve(first_request=initialize(requested)).first_response["result"]
    assert result["protocolVersion"] == (
        requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    )
    assert result["serverInfo"]["name"] == "dittybag"
    assert {"tools", "prompts", "resources"} <= result["capabilities"].keys()


@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
def test_a_profile_without_subscriptions_says_so(serve: StartServer, method: str) -> None:
    error = serve("mcpkg").error(method, {"uri": "file:///a"})
    assert error["code"] == -32601
    assert error["message"] == (
        f"Method not found: {method} (this server does not offer resource subscriptions)"
    )


@pytest.mark.parametrize(("profile", "codes"), [("all", (-32002, -32602)), ("mcpkg", (-32602, -32602))])
def test_a_missing_resource_has_the_code_of_its_profile_and_revision(
    serve: StartServer, profile: str, codes: tuple[int, int]
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
        assert error.get("data") == ({"uri": "file:///none"} if profile == "all" else None)


@pytest.mark.parametrize(
    ("options", "env"),
    [(["--read-only"], {}), ([], {"DITTYBAG_READ_ONLY": "1"})],
    ids=["option", "environment"],
)
def test_read_only_hides_every_tool_that_writes(
    serve: StartServer, options: list[str], env: dict[str, str]
) -> None:
    identity = add_prompt(serve(), "First")
    server = serve("all", *options, env=env)
    assert server.tools().keys() == READING_TOOLS
    for tool in WRITING_TOOLS:
        error = server.error("tools/call", {"name": tool, "arguments": {"id": identity}})
        assert error == {"code": -32602, "message": f"Unknown tool: {tool}"}
    assert server.data("get_prompt", id=identity)["title"] == "First"
    assert contents(server) == ["Words"]


@pytest.mark.parametrize("profile", ["mcpkg", "prompt-store", "tasks"])
def test_read_only_hides_writing_tools_in_every_profile(serve: StartServer, profile: str) -> None:
    all_tools, readable = serve(profile).tools(), serve(profile, "--read-only").tools()
    assert readable.keys() == all_tools.keys() & READING_TOOLS


def test_tools_that_only_read_are_annotated_as_read_only(server: ServerUnderTest) -> None:
    hints = {name: tool["annotations"]["readOnlyHint"] for name, tool in server.tools().items()}
    assert {name for name, hint in hints.items() if hint} == READING_TOOLS


@pytest.mark.parametrize("toolset", TOOLSETS)
def test_only_tools_of_the_given_toolset_are_available(serve: StartServer, toolset: str) -> None:
    readers, writers = TOOLSETS[toolset]
    server = serve("all", "--toolsets", toolset)
    assert server.tools().keys() == readers | writers
    for tool in (READING_TOOLS | WRITING_TOOLS) - readers - writers:
        error = server.error("tools/call", {"name": tool, "arguments": {}})
        assert error == {"code": -32602, "message": f"Unknown tool: {tool}"}


def test_toolsets_can_be_combined_and_read_only(serve: StartServer) -> None:
    options = ("--toolsets", "tasks,search")
    tasks, writers = TOOLSETS["tasks"]
    assert serve("all", *options).tools().keys() == tasks | writers | {"context", "search"}
    assert serve("all", *options, "--read-only").tools().keys() == tasks | {"context", "search"}
    assert serve(env={"DITTYBAG_TOOLSETS": "search"}).tools().keys() == {"context", "search", "read"}


def test_an_unknown_toolset_is_refused_with_a_hint(tmp_path: Path) -> None:
    done = dittybag("serve", "--toolsets", "tasks,cooking", *database(tmp_path), status=2)
    assert done.stdout == ""
    assert "cooking" in done.stderr
    assert all(toolset in done.stderr for toolset in TOOLSETS)
    assert re.search(r"^hint: ", done.stderr, re.MULTILINE)


@pytest.mark.parametrize("profile", ["all", "mcpkg", "prompt-store", "tasks"])
def test_a_missing_project_is_an_error_with_a_hint(tmp_path: Path, profile: str) -> None:
    done = dittybag("serve", "--profile", profile, "--project", "nowhere", *database(tmp_path), status=3)
    assert done.stdout == ""
    assert done.stderr.startswith("error: Project 'nowhere' does not exist in ")
    assert re.search(r"^hint: ", done.stderr, re.MULTILINE)
    dittybag("project", "create", "nowhere", *database(tmp_path))
    with ServerUnderTest(tmp_path, profile, "--project", "nowhere") as server:
        assert server.tools()
