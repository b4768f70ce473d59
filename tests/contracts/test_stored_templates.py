"""Templates: prompts that declare arguments, and resources whose URIs have variables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.contract_replay import ServerUnderTest, create_project


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
        "message": "Invalid params",
        "data": {"details": "Missing required argument: who"},
    }


def test_a_template_has_conditions_loops_and_filters(server: ServerUnderTest) -> None:
    content = "{% if mood %}[{{ mood | upper }}] {% endif %}{% for c in who %}{{ c }}.{% endfor %}"
    assert render(server, content, who="Ann", mood="glad") == "[GLAD] A.n.n."
    (message,) = server.request("prompts/get", {"name": "p", "arguments": {"who": "Bo"}})["messages"]
    assert message["content"]["text"] == "B.o."


@pytest.mark.parametrize(
    ("content", "details"),
    [
        ("one\n{% if who %}\n", "Error rendering prompt template at line 2: unexpected end of input"),
        (
            "one\n\n{{ who | nonsense }}",
            "Error rendering prompt template at line 3: filter nonsense is unknown",
        ),
        ("{% include 'other' %}", "Error rendering prompt template at line 1: "),
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "Error rendering prompt template: it takes longer than 250 ms",
        ),
    ],
)
def test_a_rendering_error_names_the_line(server: ServerUnderTest, content: str, details: str) -> None:
    declared = [{"name": "who"}]
    server.text("create_prompt", name="p", content=content, arguments=declared)
    server.text("create_resource", name="r", uri="r://{who}", content=content)
    for error in (
        server.error("prompts/get", {"name": "p"}),
        server.error("resources/read", {"uri": "r://x"}),
    ):
        assert (error["code"], error["message"]) == (-32602, "Invalid params")
        assert error["data"]["details"].startswith(details)


def test_a_template_has_at_most_64_kib(server: ServerUnderTest) -> None:
    declared = [{"name": "who"}]
    server.text("create_prompt", name="fits", content="x" * 65536, arguments=declared)
    assert len(server.request("prompts/get", {"name": "fits"})["messages"][0]["content"]["text"]) == 65536
    problem = "Error: Content with arguments must be at most 65536 bytes, but has 65537"
    error_text = server.refusal("create_prompt", name="large", content="x" * 65537, arguments=declared)
    assert error_text == problem
    server.text("create_prompt", name="large", content="x" * 65537)
    assert server.refusal("update_prompt", name="large", arguments=declared) == problem
    assert server.refusal("update_prompt", name="fits", content="x" * 65537) == problem


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
