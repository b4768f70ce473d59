"""Each official client executes the plan with the everything server and gets the specified results."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.everything import media_samples
from tests.everything.change_triggers import DYNAMIC_PROMPT, DYNAMIC_RESOURCE, DYNAMIC_TOOL
from tests.everything.client_input_tools import CHOICES_FORM, DEFAULTS_FORM
from tests.everything.everything_server import build
from tests.everything.schema_tools import PERSON_SCHEMA
from tests.interop.client_drivers import ALL_DRIVERS, STDIO, TRANSPORTS, Driver, Observation, drive
from tests.interop.client_plan import PLAN

PNG = base64.b64encode(media_samples.PNG).decode()
WAV = base64.b64encode(media_samples.WAV).decode()

#: The results of calls that request input, when the client answers as planned.
ANSWERED = {
    "elicitation": (
        'User response: action=accept, content={"username": "testuser", "email": "test@example.com"}'
    ),
    "defaults": (
        'Elicitation completed: action=accept, content={"name": "Alice", "age": 25, "score": 88.5, '
        '"status": "inactive", "verified": false}'
    ),
    "choices": (
        'Elicitation completed: action=accept, content={"untitledSingle": "option1", '
        '"titledSingle": "value1", "legacyEnum": "opt1", "untitledMulti": ["option1", "option2"], '
        '"titledMulti": ["value1", "value2"]}'
    ),
    "sampling": "LLM response: Paris, says the model.",
    "roots": "Found 1 root(s): file:///test/root",
    "state": 'state-ok: action=accept, content={"ok": true}',
    "several questions": "Name: Alice; Greeting: Paris, says the model.; Roots: 1",
    "several rounds": "Multi-round complete for Alice who likes blue",
    "needs sampling": "The client declares sampling",
}


@pytest.fixture(
    scope="module",
    params=[(driver, transport) for transport in TRANSPORTS for driver in ALL_DRIVERS],
    ids=lambda param: f"{param[0].name}-{param[1]}",
)
def observation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Observation:
    driver: Driver
    driver, transport = request.param
    return drive(driver, transport, PLAN, tmp_path_factory.mktemp(driver.name))


@pytest.fixture
def seen(observation: Observation) -> dict[str, Any]:
    return observation.seen


def _result(outcome: dict[str, Any]) -> dict[str, Any]:
    assert "error" not in outcome, outcome
    result: dict[str, Any] = outcome["result"]
    return result


def _content(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    result = _result(outcome)
    assert not result["isError"], result
    content: list[dict[str, Any]] = result["content"]
    return content


def _text(outcome: dict[str, Any]) -> str:
    (block,) = _content(outcome)
    assert block["type"] == "text"
    return str(block["text"])


def _prompt_contents(outcome: dict[str, Any]) -> list[dict[str, Any]]:
    messages = _result(outcome)["messages"]
    assert {message["role"] for message in messages} == {"user"}
    return [message["content"] for message in messages]


def _names(items: list[dict[str, Any]], key: str = "name") -> list[str]:
    return [str(item[key]) for item in items]


def test_client_and_server_negotiate_the_newest_common_revision(observation: Observation) -> None:
    assert observation.seen["connection"]["version"] == observation.driver.version


def test_the_server_introduces_itself(observation: Observation) -> None:
    introduction: dict[str, Any] = {
        "server": {
            "name": "everything",
            "version": "1.0.0",
            "title": "Everything",
            "description": "Every feature of the protocol, for tests",
        },
        "instructions": "Every tool is safe to call.",
        "capabilities": {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "completions": {},
            "logging": {},
        },
    }
    unknown: dict[str, Any] = {"server": None, "instructions": None, "capabilities": {}}
    connection = {key: observation.seen["connection"][key] for key in introduction}
    assert connection == (introduction if observation.driver.discovers_server else unknown)


def test_all_tools_are_listed_with_their_schemas(seen: dict[str, Any]) -> None:
    tools = {tool["name"]: tool for tool in seen["lists"]["tools"]}
    assert list(tools) == list(build().tools)
    assert tools["add"]["outputSchema"]["properties"] == {"sum": {"type": "integer"}}
    assert tools["json_schema_2020_12_tool"]["inputSchema"] == PERSON_SCHEMA
    assert tools["test_x_mcp_header"]["inputSchema"]["properties"]["region"]["x-mcp-header"] == "Region"


def test_all_prompts_are_listed_with_their_arguments(seen: dict[str, Any]) -> None:
    prompts = {prompt["name"]: prompt for prompt in seen["lists"]["prompts"]}
    assert list(prompts) == [
        "test_simple_prompt",
        "test_prompt_with_arguments",
        "test_prompt_with_embedded_resource",
        "test_prompt_with_image",
        "test_input_required_result_prompt",
    ]
    assert prompts["test_prompt_with_arguments"]["arguments"] == [
        {"name": "arg1", "description": "First test argument", "required": True},
        {"name": "arg2", "description": "Second test argument", "required": True},
    ]


def test_all_resources_and_templates_are_listed(seen: dict[str, Any]) -> None:
    resources = {resource["uri"]: resource for resource in seen["lists"]["resources"]}
    assert list(resources) == ["test://static-text", "test://static-binary", "test://watched-resource"]
    assert resources["test://static-text"]["annotations"] == {"audience": ["user"], "priority": 0.5}
    assert resources["test://static-binary"]["size"] == len(media_samples.PNG)
    assert _names(seen["lists"]["templates"], "uriTemplate") == ["test://template/{id}/data"]


def test_a_tool_returns_text(seen: dict[str, Any]) -> None:
    assert _text(seen["calls"]["text"]) == "This is a simple text response for testing."


def test_a_tool_returns_structured_content_and_the_same_as_text(seen: dict[str, Any]) -> None:
    outcome = seen["calls"]["structured"]
    assert _result(outcome)["structuredContent"] == {"sum": 42}
    assert json.loads(_text(outcome)) == {"sum": 42}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("image", {"type": "image", "data": PNG, "mimeType": "image/png"}),
        ("audio", {"type": "audio", "data": WAV, "mimeType": "audio/wav"}),
        (
            "embedded",
            {
                "type": "resource",
                "resource": {
                    "uri": "test://embedded-resource",
                    "mimeType": "text/plain",
                    "text": "This is an embedded resource content.",
                },
            },
        ),
        (
            "link",
            {
                "type": "resource_link",
                "uri": "test://static-text",
                "name": "static-text",
                "title": "Static text",
                "description": "The resource that never changes",
                "mimeType": "text/plain",
            },
        ),
    ],
    ids=["image", "audio", "embedded", "link"],
)
def test_every_kind_of_content_arrives(seen: dict[str, Any], call: str, expected: dict[str, Any]) -> None:
    assert _content(seen["calls"][call]) == [expected]


def test_mixed_content_keeps_its_order(seen: dict[str, Any]) -> None:
    assert [block["type"] for block in _content(seen["calls"]["mixed"])] == ["text", "image", "resource"]


def test_a_failing_tool_returns_an_error_result(seen: dict[str, Any]) -> None:
    result = _result(seen["calls"]["failure"])
    assert result["isError"] is True
    assert result["content"][0]["text"] == "This tool intentionally returns an error for testing"


def test_all_invalid_arguments_are_named_in_one_result(seen: dict[str, Any]) -> None:
    result = _result(seen["calls"]["bad arguments"])
    assert result["isError"] is True
    text = result["content"][0]["text"]
    assert all(f"`{name}`" in text for name in ("name", "guests", "day", "area", "pet")), text


def test_an_unknown_tool_is_a_protocol_error(seen: dict[str, Any]) -> None:
    error = seen["calls"]["unknown tool"]["error"]
    assert error["code"] == -32602
    assert "no_such_tool" in error["message"]


def test_prompts_arrive_with_their_arguments_filled_in(seen: dict[str, Any]) -> None:
    prompts = seen["prompts"]
    assert _prompt_contents(prompts["simple"]) == [
        {"type": "text", "text": "This is a simple prompt for testing."}
    ]
    assert _prompt_contents(prompts["arguments"]) == [
        {"type": "text", "text": "Prompt with arguments: arg1='one', arg2='two'"}
    ]


def test_prompts_carry_resources_and_images(seen: dict[str, Any]) -> None:
    embedded, text = _prompt_contents(seen["prompts"]["embedded"])
    assert embedded["resource"]["uri"] == "test://static-text"
    assert text["text"] == "Please process the embedded resource above."
    image, _ = _prompt_contents(seen["prompts"]["image"])
    assert image == {"type": "image", "data": PNG, "mimeType": "image/png"}


def test_invalid_prompt_requests_are_errors_that_name_the_problem(seen: dict[str, Any]) -> None:
    missing = seen["prompts"]["missing argument"]["error"]
    unknown = seen["prompts"]["unknown prompt"]["error"]
    assert (missing["code"], unknown["code"]) == (-32602, -32602)
    assert "arg2" in missing["message"]
    assert "no_such_prompt" in unknown["message"]


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (
            "text",
            {
                "uri": "test://static-text",
                "mimeType": "text/plain",
                "text": "This is the content of the static text resource.",
            },
        ),
        ("binary", {"uri": "test://static-binary", "mimeType": "image/png", "blob": PNG}),
        (
            "template",
            {
                "uri": "test://template/123/data",
                "mimeType": "application/json",
                "text": '{"id": "123", "templateTest": true, "data": "Data for ID: 123"}',
            },
        ),
    ],
    ids=["text", "binary", "template"],
)
def test_resources_are_read(seen: dict[str, Any], read: str, expected: dict[str, Any]) -> None:
    assert _result(seen["reads"][read])["contents"] == [expected]


def test_an_unknown_resource_has_the_code_of_the_revision(observation: Observation) -> None:
    error = observation.seen["reads"]["unknown"]["error"]
    assert error["code"] == observation.driver.resource_not_found
    assert error["data"] == {"uri": "test://no-such-resource"}


@pytest.mark.parametrize(
    ("completion", "values"),
    [
        ("prompt", ["paris", "park", "party"]),
        ("prompt in context", ["after-paris", "beside-paris"]),
        ("template", ["1", "12", "123"]),
    ],
    ids=["prompt", "prompt in context", "template"],
)
def test_arguments_are_completed(seen: dict[str, Any], completion: str, values: list[str]) -> None:
    assert _result(seen["completions"][completion])["completion"] == {
        "values": values,
        "total": len(values),
        "hasMore": False,
    }


@pytest.mark.parametrize("call", ANSWERED)
def test_the_clients_answers_reach_the_tool_that_asked(seen: dict[str, Any], call: str) -> None:
    assert _text(seen["calls"][call]) == ANSWERED[call]


def test_the_clients_answer_reaches_the_prompt_that_asked(seen: dict[str, Any]) -> None:
    assert _prompt_contents(seen["prompts"]["question"]) == [
        {"type": "text", "text": "Prompt with context: the test context"}
    ]


def test_every_request_for_input_reaches_the_client_once_and_unchanged(seen: dict[str, Any]) -> None:
    forms = [
        request["params"] for request in seen["input_requests"] if request["method"] == "elicitation/create"
    ]
    assert [form["message"] for form in forms] == [
        "Who are you?",
        "Please review and update the form fields with defaults",
        "Please select options from the enum fields",
        "Please confirm",
        "What is your name?",
        "Step 1: What is your name?",
        "Step 2: What is your favorite color?",
        "What context should the prompt use?",
    ]
    assert forms[1]["requestedSchema"] == DEFAULTS_FORM
    assert forms[2]["requestedSchema"] == CHOICES_FORM
    samples = [request["params"] for request in seen["input_requests"] if "sampling" in request["method"]]
    assert [(sample["maxTokens"], _sampled_text(sample)) for sample in samples] == [
        (100, "What is the capital of France?"),
        (50, "Generate a greeting"),
    ]
    assert sum(request["method"] == "roots/list" for request in seen["input_requests"]) == 2


def _sampled_text(params: dict[str, Any]) -> str:
    (message,) = params["messages"]
    content = message["content"]
    (block,) = content if isinstance(content, list) else [content]
    return str(block["text"])


def test_progress_arrives_in_order_while_the_tool_runs(seen: dict[str, Any]) -> None:
    assert seen["progress"] == [
        [0, 100, "Completed step 0 of 100"],
        [50, 100, "Completed step 50 of 100"],
        [100, 100, "Completed step 100 of 100"],
    ]


def test_cancelling_a_call_stops_the_tool_and_nothing_else(seen: dict[str, Any]) -> None:
    cancellation = seen["cancellation"]
    assert cancellation["outcome"] == {}, "a cancelled call has no response"
    assert cancellation["count"]["structuredContent"] == {"started": 1, "cancelled": 1}
    assert cancellation["afterwards"]["content"][0]["text"].startswith("This is a simple text")


def test_the_client_is_notified_of_every_change_and_sees_it(seen: dict[str, Any]) -> None:
    changes = seen["changes"]
    assert changes["events"] == [
        {"method": "notifications/tools/list_changed", "uri": None},
        {"method": "notifications/prompts/list_changed", "uri": None},
        {"method": "notifications/resources/list_changed", "uri": None},
        {"method": "notifications/resources/updated", "uri": "test://watched-resource"},
    ]
    assert DYNAMIC_TOOL in _names(changes["lists"]["tools"])
    assert DYNAMIC_PROMPT in _names(changes["lists"]["prompts"])
    assert DYNAMIC_RESOURCE in _names(changes["lists"]["resources"], "uri")
    assert changes["watched"]["contents"][0]["text"] == "Watched resource content, revision 2"


def test_log_messages_arrive_from_the_requested_level_on(observation: Observation) -> None:
    debug = {"level": "debug", "logger": "everything", "data": {"step": 1}}
    info = {"level": "info", "logger": "everything", "data": "Diagnostic message"}
    error = {"level": "error", "data": ["a", "list"]}
    unrequested = [] if observation.driver.stateless else [info, error]
    assert observation.seen["logs"] == [*unrequested, debug, info, error]


def test_the_server_exits_cleanly_after_the_client(
    observation: Observation, request: pytest.FixtureRequest
) -> None:
    if observation.transport != STDIO:
        assert observation.exits == [{"status": 0, "output": ""}]
        return
    *probes, session = observation.exits
    assert session == {"status": 0, "signals": []}
    assert [probe["status"] for probe in probes] == ([0] if observation.driver.probes_first else [])
