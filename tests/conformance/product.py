"""Dittybag itself before the suite: what is in its store, and what the suite wants that no product has."""

from __future__ import annotations

import base64
import json
from http.client import HTTPConnection
from typing import Any, Final
from urllib.parse import urlsplit

from tests.everything import media

_VERSION: Final = "2026-07-28"
_NAMED: Final = ("tools/call", "prompts/get")

#: What a user would have stored, under the names that the suite asks for. It wants every prompt described.
CONTENTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
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
            "content": base64.b64encode(media.PNG).decode(),
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

_ASKING_TOOLS: Final = "tool test_input_required_result_"

#: What Dittybag lacks, because only a test would have it; `judge` says what the keys mean.
WANTS: Final = {
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
    # Dittybag has nothing to log to a client, and so does not say that it could.
    "logging-set-level": "capability logging",
    "tools-call-with-logging": "capability logging",
    # A stored prompt is text.
    "prompts-get-embedded-resource": "prompt test_prompt_with_embedded_resource",
    "prompts-get-with-image": "prompt test_prompt_with_image",
    "input-required-result-non-tool-request": "prompt test_input_required_result_prompt",
    "input-required-result-basic-elicitation": f"{_ASKING_TOOLS}elicitation",
    "input-required-result-basic-sampling": f"{_ASKING_TOOLS}sampling",
    "input-required-result-basic-list-roots": f"{_ASKING_TOOLS}list_roots",
    "input-required-result-request-state": f"{_ASKING_TOOLS}request_state",
    "input-required-result-multiple-input-requests": f"{_ASKING_TOOLS}multiple_inputs",
    "input-required-result-multi-round": f"{_ASKING_TOOLS}multi_round",
    "input-required-result-missing-input-response": f"{_ASKING_TOOLS}elicitation",
    "input-required-result-result-type": f"{_ASKING_TOOLS}elicitation",
    "input-required-result-tampered-state": f"{_ASKING_TOOLS}tampered_state",
    "input-required-result-capability-check": f"{_ASKING_TOOLS}capabilities",
    "input-required-result-ignore-extra-params": f"{_ASKING_TOOLS}elicitation",
    # Passed also by a server that does not know the tool.
    "input-required-result-validate-input/sep-2322-error-on-protocol-error": f"{_ASKING_TOOLS}elicitation",
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


def fill(address: str) -> None:
    """Put the contents into the store of a server."""
    for tool, arguments in CONTENTS:
        result = _ask(address, "tools/call", {"name": tool, "arguments": arguments})
        assert result["isError"] is False, result


def offered(address: str) -> set[str]:
    """What a server has, in the words of `WANTS`."""
    capabilities = _ask(address, "server/discover", {})["capabilities"]
    tools = _ask(address, "tools/list", {})["tools"]
    prompts = _ask(address, "prompts/list", {})["prompts"]
    return {
        *(f"capability {name}" for name in capabilities),
        *(f"tool {tool['name']}" for tool in tools),
        *(f"prompt {prompt['name']}" for prompt in prompts),
    }


def _ask(address: str, method: str, params: dict[str, Any]) -> Any:
    meta = {
        "io.modelcontextprotocol/protocolVersion": _VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": _VERSION,
        "Mcp-Method": method,
        **({"Mcp-Name": params["name"]} if method in _NAMED else {}),
    }
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    parts = urlsplit(address)
    assert parts.hostname
    connection = HTTPConnection(parts.hostname, parts.port, timeout=30)
    try:
        connection.request("POST", parts.path, json.dumps(request), headers)
        answer = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    assert "result" in answer, answer
    return answer["result"]
