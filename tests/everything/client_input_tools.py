"""Tools that request input from the client, its user or its model.

Each request for input has its own key. The same handler therefore works in revisions where the server sends a
request to the client and in revisions where the client repeats its call with the input.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from dittybag.protocol.argument_schemas import NoArguments
from dittybag.protocol.client_input import (
    Elicit,
    ElicitationResult,
    ListRoots,
    Question,
    SampleModel,
    SamplingMessage,
)
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server
from dittybag.protocol.wire_errors import MissingClientCapability


class Message(Struct):
    message: Annotated[str, Meta(description="The message for the user")]


class PromptText(Struct):
    prompt: Annotated[str, Meta(description="The message for the model")]


class NameForm(Struct):
    name: str


class ColorForm(Struct):
    color: str


class ValueForm(Struct):
    value: str


class ConfirmForm(Struct):
    ok: bool


class UserForm(Struct):
    username: Annotated[str, Meta(description="User's response")]
    email: Annotated[str, Meta(description="User's email address")]


#: A form with a default for each kind of field.
DEFAULTS_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {
            "type": "string",
            "description": "User status",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    },
    "required": [],
}


def _titled(*titles: str) -> list[dict[str, str]]:
    return [{"const": f"value{number}", "title": title} for number, title in enumerate(titles, 1)]


#: A form with each kind of enum field.
CHOICES_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {
            "type": "string",
            "oneOf": _titled("First Option", "Second Option", "Third Option"),
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {"anyOf": _titled("First Choice", "Second Choice", "Third Choice")},
        },
    },
    "required": [],
}


def register(server: Server) -> None:
    _register_single_questions(server)
    _register_rounds(server)
    _register_capability_checks(server)


def _register_single_questions(server: Server) -> None:
    @server.tool("test_sampling", PromptText, description="Asks the client's model")
    async def sampling(arguments: PromptText, ctx: Context) -> str:
        sampled = await ctx.sample(_user_message(arguments.prompt), max_tokens=100, key="completion")
        return f"LLM response: {sampled.text}"

    @server.tool("test_elicitation", Message, description="Asks the user for a name and an email address")
    async def elicitation(arguments: Message, ctx: Context) -> str:
        elicited = await ctx.elicit(arguments.message, UserForm, key="user")
        return f"User response: {_describe(elicited)}"

    @server.tool(
        "test_elicitation_sep1034_defaults", description="Asks the user with a form that has defaults"
    )
    async def elicitation_defaults(arguments: NoArguments, ctx: Context) -> str:
        message = "Please review and update the form fields with defaults"
        return f"Elicitation completed: {_describe(await ctx.elicit(message, DEFAULTS_FORM, key='defaults'))}"

    @server.tool("test_elicitation_sep1330_enums", description="Asks the user to choose")
    async def elicitation_choices(arguments: NoArguments, ctx: Context) -> str:
        message = "Please select options from the enum fields"
        return f"Elicitation completed: {_describe(await ctx.elicit(message, CHOICES_FORM, key='choices'))}"

    @server.tool("test_streaming_elicitation", description="Reports progress, logs, and then asks the user")
    async def streaming_elicitation(arguments: NoArguments, ctx: Context) -> str:
        ctx.progress(50, 100)
        ctx.log("info", "About to ask")
        return f"Streaming complete: {_describe(await ctx.elicit('Continue?', ConfirmForm, key='continue'))}"

    @server.tool("test_input_required_result_elicitation", description="Asks the user for a name")
    async def asks_user(arguments: NoArguments, ctx: Context) -> str:
        elicited = await ctx.elicit("What is your name?", NameForm, key="user_name")
        return f"Hello, {_field_value(elicited, 'name')}!"

    @server.tool("test_input_required_result_sampling", description="Asks the client's model a question")
    async def asks_model(arguments: NoArguments, ctx: Context) -> str:
        question = _user_message("What is the capital of France?")
        sampled = await ctx.sample(question, max_tokens=100, key="capital_question")
        return f"Sampling result: {sampled.text}"

    @server.tool("test_input_required_result_list_roots", description="Asks the client for its roots")
    async def asks_roots(arguments: NoArguments, ctx: Context) -> str:
        roots = await ctx.roots(key="client_roots")
        listed = ", ".join(root.uri for root in roots)
        return f"Found {len(roots)} root(s): {listed}"


def _register_rounds(server: Server) -> None:
    @server.tool(
        "test_input_required_result_request_state", description="Asks the user and checks the request state"
    )
    async def request_state(arguments: NoArguments, ctx: Context) -> str:
        elicited = await ctx.elicit("Please confirm", ConfirmForm, key="confirm")
        if ctx.revision.stateless and "requestState" not in ctx.params:
            return "state-missing: the answer has no request state"
        return f"state-ok: {_describe(elicited)}"

    @server.tool(
        "test_input_required_result_multiple_inputs", description="Makes three requests for input at once"
    )
    async def multiple_inputs(arguments: NoArguments, ctx: Context) -> str:
        answers = await ctx.ask(
            {
                "user_name": Elicit("What is your name?", NameForm),
                "greeting": SampleModel(messages=(_user_message("Generate a greeting"),), max_tokens=50),
                "client_roots": ListRoots(),
            }
        )
        name, greeting = _field_value(answers["user_name"], "name"), answers["greeting"].text
        return f"Name: {name}; Greeting: {greeting}; Roots: {len(answers['client_roots'].roots)}"

    @server.tool(
        "test_input_required_result_multi_round", description="Makes two requests for input in sequence"
    )
    async def multi_round(arguments: NoArguments, ctx: Context) -> str:
        name = _field_value(await ctx.elicit("Step 1: What is your name?", NameForm, key="step1"), "name")
        color = await ctx.elicit("Step 2: What is your favorite color?", ColorForm, key="step2")
        return f"Multi-round complete for {name} who likes {_field_value(color, 'color')}"

    @server.tool(
        "test_input_required_result_tampered_state", description="Asks the user and rejects tampered state"
    )
    async def tampered_state(arguments: NoArguments, ctx: Context) -> str:
        return f"integrity-ok: {_describe(await ctx.elicit('Please confirm', ConfirmForm, key='confirm'))}"


def _register_capability_checks(server: Server) -> None:
    @server.tool("test_missing_capability", description="Works only with clients that can sample")
    def missing_capability(arguments: NoArguments, ctx: Context) -> str:
        if not ctx.can_ask(SampleModel):
            raise MissingClientCapability({"sampling": {}})
        return "The client declares sampling"

    @server.tool(
        "test_input_required_result_capabilities", description="Asks only for input that the client supports"
    )
    async def capabilities(arguments: NoArguments, ctx: Context) -> str:
        possible: dict[str, Question[Any]] = {
            "elicit_input": Elicit("Elicitation input", ValueForm),
            "sample_input": SampleModel(messages=(_user_message("Sample request"),), max_tokens=50),
        }
        questions = {key: question for key, question in possible.items() if ctx.can_ask(question)}
        if not questions:
            return "No supported capabilities declared"
        return f"capabilities-ok: received {', '.join(await ctx.ask(questions))}"


def _user_message(text: str) -> SamplingMessage:
    return SamplingMessage(role="user", content={"type": "text", "text": text})


def _describe(elicited: ElicitationResult) -> str:
    return f"action={elicited.action}, content={json.dumps(elicited.content or {})}"


def _field_value(elicited: ElicitationResult, field: str) -> Any:
    return (elicited.content or {}).get(field, f"({elicited.action})")
