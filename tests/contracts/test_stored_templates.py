"""Templates: prompts that declare arguments, and resources whose URIs have variables."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from dittybag.assembly.server_setup import open_server
from dittybag.config import settings_from_process
from dittybag.library.render import template_renderer
from tests.child_processes import child_pids
from tests.contracts.contract_replay import (
    HANDSHAKE_VERSIONS,
    ServerUnderTest,
    create_project,
    database,
    initialize,
)
from tests.protocol.memory_client import MemoryClient


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerUnderTest]:
    create_project(tmp_path, "auth-module")
    with ServerUnderTest(tmp_path) as opened:
        yield opened


def render(server: ServerUnderTest, content: str, **values: object) -> str:
    declared = [{"name": "who", "description": "Whom to greet", "required": True}, {"name": "mood"}]
    server.text("create_prompt", name="p", content=content, arguments=declared)
    (message,) = server.request("prompts/get", {"name": "p", "arguments": values})["messages"]
    text: str = message["content"]["text"]
    return text


def test_a_prompt_that_declares_arguments_is_rendered(server: ServerUnderTest) -> None:
    assert render(server, "Hello {{ who }}, {{mood}}!\n", who="Ann", mood="glad") == "Hello Ann, glad!\n"


def test_an_optional_argument_that_is_missing_is_empty(server: ServerUnderTest) -> None:
    assert render(server, "[{{ mood }}] {{ who }}", who="Ann") == "[] Ann"


def test_only_declared_arguments_reach_the_template(server: ServerUnderTest) -> None:
    assert render(server, "{{ who }}{{ secret }}", who="Ann", secret="x") == "Ann"


def test_template_syntax_in_an_argument_is_not_evaluated(server: ServerUnderTest) -> None:
    assert render(server, "{{ who }}", who="{{ mood }}{{7*7}}", mood="x") == "{{ mood }}{{7*7}}"


def test_values_that_are_not_text_are_rendered_as_json(server: ServerUnderTest) -> None:
    assert render(server, "{{ who }} {{ mood }}", who=7, mood=["a", True]) == '7 ["a",true]'


def test_a_missing_required_argument_is_named(server: ServerUnderTest) -> None:
    render(server, "{{ who }}", who="x")
    assert server.error("prompts/get", {"name": "p"}) == {
        "code": -32602,
        "message": "Missing required argument: who",
        "data": {"details": "Missing required argument: who"},
    }
    # Null counts as absent.
    assert (
        server.error("prompts/get", {"name": "p", "arguments": {"who": None}})["message"]
        == "Missing required argument: who"
    )


def test_a_template_has_conditions_loops_and_filters(server: ServerUnderTest) -> None:
    content = "{% if mood %}[{{ mood | upper }}] {% endif %}{% for c in who %}{{ c }}.{% endfor %}"
    assert render(server, content, who="Ann", mood="glad") == "[GLAD] A.n.n."
    (message,) = server.request("prompts/get", {"name": "p", "arguments": {"who": "Bo"}})["messages"]
    assert message["content"]["text"] == "B.o."


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("one\n\n{{ who | nonsense }}", " at line 3: filter nonsense is unknown"),
        ("one\n{{ who }}{{ mood + 1 }}", " at line 2: undefined variable 'mood'"),
        ("{% include 'other' %}", " at line 1: "),
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            ": it takes longer than 250 ms",
        ),
    ],
)
def test_a_rendering_error_names_the_line(server: ServerUnderTest, content: str, problem: str) -> None:
    declared = [{"name": "who"}]
    server.text("create_prompt", name="p", content=content, arguments=declared)
    server.text("create_resource", name="r", uri="r://{who}", content=content)
    errors = {
        "prompt": server.error("prompts/get", {"name": "p"}),
        "resource": server.error("resources/read", {"uri": "r://x"}),
    }
    for kind, error in errors.items():
        assert error["code"] == -32602
        assert error["message"].startswith(f"Error rendering {kind} template{problem}")
        assert error["data"] == {"details": error["message"]}


BROKEN = "one\n{% if who %}\n"
REFUSED = "Error: Content is not a valid template: line 2: unexpected end of input"


@pytest.mark.parametrize("profile", ["all", "mcpkg"])
def test_a_resource_template_that_cannot_be_parsed_is_refused(tmp_path: Path, profile: str) -> None:
    with ServerUnderTest(tmp_path, profile) as server:
        refused = server.refusal("create_resource", name="r", uri="r://{who}", content=BROKEN)
        assert refused.startswith(REFUSED)
        server.text("create_resource", name="r", uri="r://{who}", content="{{ who }}")
        assert server.refusal("update_resource", name="r", content=BROKEN).startswith(REFUSED)
        # What has no variables is no template.
        server.text("create_resource", name="plain", uri="r://plain", content=BROKEN)
        server.text("update_resource", name="plain", content=f"{BROKEN}.")
        assert server.request("resources/read", {"uri": "r://x"})["contents"][0]["text"] == "x"


def test_a_change_that_makes_a_resource_a_broken_template_is_refused(server: ServerUnderTest) -> None:
    encoded = "b25lCnslIGlmIHdobyAlfQo="
    server.text(
        "create_resource", name="r", uri="r://{x}", content=encoded, mime_type="application/octet-stream"
    )
    assert server.refusal("update_resource", name="r", mime_type="text/plain").startswith(REFUSED)


def test_a_prompt_template_that_cannot_be_parsed_is_refused(server: ServerUnderTest) -> None:
    declared = [{"name": "who"}]
    refused = server.refusal("create_prompt", name="p", content=BROKEN, arguments=declared)
    assert refused.startswith(REFUSED)
    server.text("create_prompt", name="p", content="{{ who }}", arguments=declared)
    assert server.refusal("update_prompt", name="p", content=BROKEN).startswith(REFUSED)
    # Without arguments it is verbatim text.
    server.text("create_prompt", name="v", content=BROKEN)
    server.text("update_prompt", name="v", content=f"{BROKEN}.")
    assert server.refusal("update_prompt", name="v", arguments=declared).startswith(REFUSED)


def test_a_template_can_be_as_large_as_any_content(server: ServerUnderTest) -> None:
    declared = [{"name": "who"}]
    content = "x" * (1024 * 1024 - len("{{ who }}")) + "{{ who }}"
    server.text("create_prompt", name="fits", content=content, arguments=declared)
    (message,) = server.request("prompts/get", {"name": "fits", "arguments": {"who": "Ann"}})["messages"]
    assert message["content"]["text"] == content.replace("{{ who }}", "Ann")
    problem = "Error: Content must be at most 1048576 bytes, but has 1048577"
    assert server.refusal("create_prompt", name="large", content=content + "x", arguments=declared) == problem


def test_a_prompt_without_arguments_is_not_rendered(server: ServerUnderTest) -> None:
    server.text("create_prompt", name="v", content="{{ who }} {% raw %}")
    (message,) = server.request("prompts/get", {"name": "v", "arguments": {"who": "x"}})["messages"]
    assert message["content"]["text"] == "{{ who }} {% raw %}"


def test_arguments_are_listed_as_declared(server: ServerUnderTest) -> None:
    render(server, "{{ who }}", who="x")
    (listed,) = server.request("prompts/list")["prompts"]
    assert listed["arguments"] == [
        {"name": "who", "description": "Whom to greet", "required": True},
        {"name": "mood", "required": False},
    ]
    server.text("update_prompt", name="p", arguments=[])
    assert server.request("prompts/list")["prompts"][0]["arguments"] == []


def test_a_resource_whose_uri_has_variables_is_a_template(server: ServerUnderTest) -> None:
    server.text(
        "create_resource",
        name="Table-Schema",
        uri="db://tables/{table_name}/schema",
        content="-- {{ table_name }} and {{ other }}\n",
        mime_type="application/sql",
        title="Table Schema",
        description="Database table schema",
    )
    assert server.request("resources/list")["resources"] == []
    listed = server.request("resources/templates/list")["resourceTemplates"]
    assert listed[0] == {
        "uriTemplate": "db://tables/{table_name}/schema",
        "name": "Table-Schema",
        "title": "Table Schema",
        "description": "Database table schema",
        "mimeType": "application/sql",
    }
    (content,) = server.request("resources/read", {"uri": "db://tables/us%20ers/schema"})["contents"]
    assert content == {
        "uri": "db://tables/us%20ers/schema",
        "mimeType": "application/sql",
        "text": "-- us ers and \n",
    }


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_the_title_of_a_resource_is_seen_in_every_revision(tmp_path: Path, version: str) -> None:
    with ServerUnderTest(tmp_path, first_request=initialize(version)) as server:
        server.text("create_resource", name="notes", uri="n://notes", content="x", title="My notes")
        server.text("create_resource", name="bare", uri="n://bare", content="x")
        server.text("create_resource", name="t", uri="t://{x}", content="x", title="My template")
        notes, bare = server.request("resources/list")["resources"]
        template, *_ = server.request("resources/templates/list")["resourceTemplates"]
    seen = [(item["name"], item.get("title")) for item in (notes, bare, template)]
    if version >= "2025-06-18":
        assert seen == [("notes", "My notes"), ("bare", None), ("t", "My template")]
    else:
        assert seen == [("My notes", None), ("bare", None), ("My template", None)]


def test_a_resource_takes_precedence_over_a_template(server: ServerUnderTest) -> None:
    server.text("create_resource", name="t", uri="db://{table}", content="any {{ table }}")
    server.text("create_resource", name="users", uri="db://users", content="the users")
    assert server.request("resources/read", {"uri": "db://users"})["contents"][0]["text"] == "the users"
    assert server.request("resources/read", {"uri": "db://other"})["contents"][0]["text"] == "any other"


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("db://{a}{b}", "URI 'db://{a}{b}' must have text between its variables"),
        ("db://{a}/{a}", "URI 'db://{a}/{a}' uses a variable twice"),
        (
            "db://{+a}",
            "URI 'db://{+a}' has braces that are not simple {variables}; write literal braces as %7B and %7D",
        ),
    ],
)
def test_a_template_that_cannot_be_matched_is_refused(
    server: ServerUnderTest, uri: str, problem: str
) -> None:
    assert server.refusal("create_resource", name="t", uri=uri, content="x") == f"Error: {problem}"


def test_dittybag_s_own_templates_show_tags_and_projects(server: ServerUnderTest) -> None:
    prompt_id = server.data("add_prompt", title="One", content="x", tags=["review"])["id"]
    (tagged,) = server.request("resources/read", {"uri": "dittybag://tags/Review"})["contents"]
    assert tagged["text"] == (
        f'{{"tag":"review","total":1,"prompts":[{{"id":"{prompt_id}","name":"one","title":"One"}}]}}'
    )
    (project,) = server.request("resources/read", {"uri": "dittybag://projects/default"})["contents"]
    assert project["text"] == '{"project":"default","prompts":1,"resources":0,"tasks":0}'
    for missing in ("dittybag://tags/none", "dittybag://projects/none"):
        assert server.error("resources/read", {"uri": missing})["code"] == -32002


def test_a_drop_in_profile_has_no_templates_of_its_own(tmp_path: Path) -> None:
    with ServerUnderTest(tmp_path, "mcpkg") as server:
        assert server.request("resources/templates/list") == {"resourceTemplates": []}


@pytest.mark.parametrize("has_arguments", [True, False])
async def test_listing_a_prompt_with_arguments_starts_the_process_that_renders_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_arguments: bool
) -> None:
    monkeypatch.setenv("DITTYBAG_HOME", str(tmp_path))
    monkeypatch.setattr(template_renderer, "_START_DELAY_SECONDS", 0.0)
    arguments = [{"name": "who"}] if has_arguments else []
    with ServerUnderTest(tmp_path) as earlier:
        earlier.text("create_prompt", name="p", content="Hello", arguments=arguments)
    others = child_pids()
    _, server = await open_server(settings_from_process(db=database(tmp_path)[1]))
    async with asyncio.timeout(10), server.lifespan(), MemoryClient(server) as client:
        assert [prompt["name"] for prompt in (await client.request("prompts/list"))["prompts"]] == ["p"]
        await asyncio.sleep(0.001)
        while has_arguments and child_pids() == others:  # noqa: ASYNC110  # there is no event for this
            await asyncio.sleep(0.001)
        assert len(child_pids() - others) == has_arguments
