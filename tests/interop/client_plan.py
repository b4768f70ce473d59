"""The plan that the official clients execute with the everything server."""

from __future__ import annotations

from typing import Any, Final

_PROMPT: Final = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
_TEMPLATE: Final = {"type": "ref/resource", "uri": "test://template/{id}/data"}

PLAN: Final[dict[str, Any]] = {
    "form": {
        "username": "testuser",
        "email": "test@example.com",
        "name": "Alice",
        "color": "blue",
        "value": "something",
        "ok": True,
        "context": "the test context",
        "age": 25,
        "score": 88.5,
        "status": "inactive",
        "verified": False,
        "untitledSingle": "option1",
        "titledSingle": "value1",
        "legacyEnum": "opt1",
        "untitledMulti": ["option1", "option2"],
        "titledMulti": ["value1", "value2"],
    },
    "sample": "Paris, says the model.",
    "roots": [{"uri": "file:///test/root", "name": "Test Root"}],
    "watched": "test://watched-resource",
    "triggers": [
        "test_trigger_tool_change",
        "test_trigger_prompt_change",
        "test_trigger_resource_change",
        "test_trigger_resource_update",
    ],
    "calls": {
        "text": ["test_simple_text", {}],
        "structured": ["add", {"a": 2, "b": 40}],
        "image": ["test_image_content", {}],
        "audio": ["test_audio_content", {}],
        "embedded": ["test_embedded_resource", {}],
        "link": ["test_resource_link", {}],
        "mixed": ["test_multiple_content_types", {}],
        "failure": ["test_error_handling", {}],
        "bad arguments": ["book_table", {"guests": 30, "day": "tomorrow", "area": "roof", "pet": "cat"}],
        "unknown tool": ["no_such_tool", {}],
        "elicitation": ["test_elicitation", {"message": "Who are you?"}],
        "defaults": ["test_elicitation_sep1034_defaults", {}],
        "choices": ["test_elicitation_sep1330_enums", {}],
        "sampling": ["test_sampling", {"prompt": "What is the capital of France?"}],
        "roots": ["test_input_required_result_list_roots", {}],
        "state": ["test_input_required_result_request_state", {}],
        "several questions": ["test_input_required_result_multiple_inputs", {}],
        "several rounds": ["test_input_required_result_multi_round", {}],
        "needs sampling": ["test_missing_capability", {}],
    },
    "prompts": {
        "simple": ["test_simple_prompt", {}],
        "arguments": ["test_prompt_with_arguments", {"arg1": "one", "arg2": "two"}],
        "embedded": ["test_prompt_with_embedded_resource", {"resourceUri": "test://static-text"}],
        "image": ["test_prompt_with_image", {}],
        "question": ["test_input_required_result_prompt", {}],
        "missing argument": ["test_prompt_with_arguments", {"arg1": "one"}],
        "unknown prompt": ["no_such_prompt", {}],
    },
    "reads": {
        "text": "test://static-text",
        "binary": "test://static-binary",
        "template": "test://template/123/data",
        "unknown": "test://no-such-resource",
    },
    "completions": {
        "prompt": [_PROMPT, {"name": "arg1", "value": "par"}, None],
        "prompt in context": [_PROMPT, {"name": "arg2", "value": ""}, {"arg1": "paris"}],
        "template": [_TEMPLATE, {"name": "id", "value": "1"}, None],
    },
}
