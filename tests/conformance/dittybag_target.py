"""Dittybag as a target of the suite: its store contents and the exclusions."""

from __future__ import annotations

import base64
from typing import Any, Final

from tests.everything import media_samples
from tests.http.plain_http_client import PlainHttpClient

#: Prompts and resources with the names that the suite requests. The suite requires prompt descriptions.
STORE_CONTENTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    (
        "create_prompt",
        {
            "name": "test_simple_prompt",
            "description": "A prompt without arguments",
            "content": "This is a simple prompt for testing.",
        },
    ),
    (
        "create_prompt",
        {
            "name": "test_prompt_with_arguments",
            "description": "A prompt with two arguments",
            "content": "Prompt with arguments: arg1='{{ arg1 }}', arg2='{{ arg2 }}'",
            "arguments": [{"name": "arg1", "required": True}, {"name": "arg2", "required": True}],
        },
    ),
    (
        "create_resource",
        {
            "name": "static-text",
            "uri": "test://static-text",
            "content": "This is the content of the static text resource.",
        },
    ),
    (
        "create_resource",
        {
            "name": "static-binary",
            "uri": "test://static-binary",
            "content": base64.b64encode(media_samples.PNG).decode(),
            "mime_type": "image/png",
        },
    ),
    (
        "create_resource",
        {
            "name": "template",
            "uri": "test://template/{id}/data",
            "content": '{"id": "{{ id }}", "templateTest": true, "data": "Data for ID: {{ id }}"}',
            "mime_type": "application/json",
        },
    ),
    (
        "create_resource",
        {"name": "watched", "uri": "test://watched-resource", "content": "Watched resource content"},
    ),
)

_INPUT_TOOLS: Final = "tool test_input_required_result_"

#: The test-only feature that each excluded scenario or check needs. See `Exclusions` for the keys.
EXCLUSIONS: Final = {
    "tools-call-simple-text": "tool test_simple_text",
    "tools-call-image": "tool test_image_content",
    "tools-call-audio": "tool test_audio_content",
    "tools-call-embedded-resource": "tool test_embedded_resource",
    "tools-call-mixed-content": "tool test_multiple_content_types",
    "tools-call-error": "tool test_error_handling",
    "tools-call-with-progress": "tool test_tool_with_progress",
    "tools-call-sampling": "tool test_sampling",
    "tools-call-elicitation": "tool test_elicitation",
    "elicitation-sep1034-defaults": "tool test_elicitation_sep1034_defaults",
    "elicitation-sep1330-enums": "tool test_elicitation_sep1330_enums",
    "json-schema-2020-12": "tool json_schema_2020_12_tool",
    "server-sse-polling": "tool test_reconnection",
    "http-custom-header-server-validation": "tool test_x_mcp_header",
    # Dittybag sends no log messages to clients, so it does not declare the capability.
    "logging-set-level": "capability logging",
    "tools-call-with-logging": "capability logging",
    # A stored prompt contains only text.
    "prompts-get-embedded-resource": "prompt test_prompt_with_embedded_resource",
    "prompts-get-with-image": "prompt test_prompt_with_image",
    "input-required-result-non-tool-request": "prompt test_input_required_result_prompt",
    "input-required-result-basic-elicitation": f"{_INPUT_TOOLS}elicitation",
    "input-required-result-basic-sampling": f"{_INPUT_TOOLS}sampling",
    "input-required-result-basic-list-roots": f"{_INPUT_TOOLS}list_roots",
    "input-required-result-request-state": f"{_INPUT_TOOLS}request_state",
    "input-required-result-multiple-input-requests": f"{_INPUT_TOOLS}multiple_inputs",
    "input-required-result-multi-round": f"{_INPUT_TOOLS}multi_round",
    "input-required-result-missing-input-response": f"{_INPUT_TOOLS}elicitation",
    "input-required-result-result-type": f"{_INPUT_TOOLS}elicitation",
    "input-required-result-tampered-state": f"{_INPUT_TOOLS}tampered_state",
    "input-required-result-capability-check": f"{_INPUT_TOOLS}capabilities",
    "input-required-result-ignore-extra-params": f"{_INPUT_TOOLS}elicitation",
    # A server without the tool passes this check as well.
    "input-required-result-validate-input/sep-2322-error-on-protocol-error": f"{_INPUT_TOOLS}elicitation",
    "server-stateless/sep-2575-server-rejects-undeclared-capability": "tool test_missing_capability",
    "server-stateless/sep-2575-missing-capability-http-400": "tool test_missing_capability",
    "server-stateless/sep-2575-http-server-no-independent-requests-on-stream": (
        "tool test_streaming_elicitation"
    ),
    "server-stateless/sep-2575-server-no-log-without-loglevel": "tool test_logging_tool",
    "server-stateless/sep-2575-server-sends-prompts-list-changed-on-subscription": (
        "tool test_trigger_prompt_change"
    ),
    "server-stateless/sep-2575-server-sends-tools-list-changed-on-subscription": (
        "tool test_trigger_tool_change"
    ),
}


def fill_store(client: PlainHttpClient) -> None:
    """Create the store contents on a server."""
    for tool, arguments in STORE_CONTENTS:
        result = client.use(tool, arguments).result()
        assert result["isError"] is False, result


def available_features(client: PlainHttpClient) -> set[str]:
    """Return the features of a server, spelled as in `EXCLUSIONS`."""
    capabilities = client.ask("server/discover").result()["capabilities"]
    tools = client.ask("tools/list").result()["tools"]
    prompts = client.ask("prompts/list").result()["prompts"]
    return {
        *(f"capability {name}" for name in capabilities),
        *(f"tool {tool['name']}" for tool in tools),
        *(f"prompt {prompt['name']}" for prompt in prompts),
    }
