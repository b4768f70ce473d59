"""Tools that ask the client or its user something before they answer.

Each question has a key of its own, so that the same handler serves the revisions in which the client is sent
a request and those in which it has to call again.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from dittybag.protocol import Context, MissingClientCapability, NoArguments, Server
from dittybag.protocol.client_input import (
    Elicit,
    ElicitationResult,
    ListRoots,
    Question,
    SampleModel,
    SamplingMessage,
)


class Message(Struct):
    message: Annotated[str, Meta(description="What to say to the user")]


class PromptText(Struct):
    prompt: Annotated[str, Meta(description="What to say to the model")]


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


#: A default for each kind of field.
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


#: Each way to offer a choice.
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


def offer(server: Server) -> None:
    _offer_single_questions(server)
    _offer_rounds(server)
    _offer_capability_checks(server)


def _offer_single_questions(server: Server) -> None:
    @server.tool("test_sampling", PromptText, description="Asks the client's model")
    async def sampling(arguments: PromptText, ctx: Context) -> str:
        sampled = await ctx.sample(_user(arguments.prompt), max_tokens=100, key="completion")
        return f"LLM response: {sampled.text}"

    @server.tool("test_elicitation", Message, description="Asks the user for a name and an address")
    async def elicitation(arguments: Message, ctx: Context) -> str:
        elicited = await ctx.elicit(arguments.message, UserForm, key="user")
        return f"User response: {_told(elicited)}"

    @server.tool("test_elicitation_sep1034_defaults", description="Asks the user with a filled-in form")
    async def elicitation_defaults(arguments: NoArguments, ctx: Context) -> str:
        message = "Please review and update the form fields with defaults"
        return f"Elicitation completed: {_told(await ctx.elicit(message, DEFAULTS_FORM, key='defaults'))}"

    @server.tool("test_elicitation_sep1330_enums", description="Asks the user to choose")
    async def elicitation_choices(arguments: NoArguments, ctx: Context) -> str:
        message = "Please select options from the enum fields"
        return f"Elicitation completed: {_told(await ctx.elicit(message, CHOICES_FORM, key='choices'))}"

    @server.tool("test_streaming_elicitation", description="Reports progress, logs, and then asks the user")
    async def streaming_elicitation(arguments: NoArguments, ctx: Context) -> str:
        ctx.progress(50, 100)
        ctx.log("info", "About to ask")
        return f"Streaming complete: {_told(await ctx.elicit('Go on?', ConfirmForm, key='go_on'))}"

    @server.tool("test_input_required_result_elicitation", description="Asks the user for a name")
    async def asks_user(arguments: NoArguments, ctx: Context) -> str:
        elicited = await ctx.elicit("What is your name?", NameForm, key="user_name")
        return f"Hello, {_given(elicited, 'name')}!"

    @server.tool("test_input_required_result_sampling", description="Asks the client's model a question")
    async def asks_model(arguments: NoArguments, ctx: Context) -> str:
        question = _user("What is the capital of France?")
        sampled = await ctx.sample(question, max_tokens=100, key="capital_question")
        return f"Sampling result: {sampled.text}"

    @server.tool("test_input_required_result_list_roots", description="Asks the client for its roots")
    async def asks_roots(arguments: NoArguments, ctx: Context) -> str:
        roots = await ctx.roots(key="client_roots")
        listed = ", ".join(root.uri for root in roots)
        return f"Found {len(roots)} root(s): {listed}"


def _offer_rounds(server: Server) -> None:
    @server.tool("test_input_required_result_request_state", description="Asks, and wants its state back")
    async def request_state(arguments: NoArguments, ctx: Context) -> str:
        elicited = await ctx.elicit("Please confirm", ConfirmForm, key="confirm")
        if ctx.revision.stateless and "requestState" not in ctx.params:
            return "state-missing: an answer without the state of the question"
        return f"state-ok: {_told(elicited)}"

    @server.tool("test_input_required_result_multiple_inputs", description="Asks three things at once")
    async def multiple_inputs(arguments: NoArguments, ctx: Context) -> str:
        answers = await ctx.ask(
            {
                "user_name": Elicit("What is your name?", NameForm),
                "greeting": SampleModel(messages=(_user("Generate a greeting"),), max_tokens=50),
                "client_roots": ListRoots(),
            }
        )
        name, greeting = _given(answers["user_name"], "name"), answers["greeting"].text
        return f"Name: {name}; Greeting: {greeting}; Roots: {len(answers['client_roots'].roots)}"

    @server.tool("test_input_required_result_multi_round", description="Asks one thing after the other")
    async def multi_round(arguments: NoArguments, ctx: Context) -> str:
        name = _given(await ctx.elicit("Step 1: What is your name?", NameForm, key="step1"), "name")
        color = await ctx.elicit("Step 2: What is your favorite color?", ColorForm, key="step2")
        return f"Multi-round complete for {name} who likes {_given(color, 'color')}"

    @server.tool("test_input_required_result_tampered_state", description="Asks, and trusts no other state")
    async def tampered_state(arguments: NoArguments, ctx: Context) -> str:
        return f"integrity-ok: {_told(await ctx.elicit('Please confirm', ConfirmForm, key='confirm'))}"


def _offer_capability_checks(server: Server) -> None:
    @server.tool("test_missing_capability", description="Works only with clients that can sample")
    def missing_capability(arguments: NoArguments, ctx: Context) -> str:
        if not ctx.can_ask(SampleModel):
            raise MissingClientCapability({"sampling": {}})
        return "The client declares sampling"

    @server.tool(
        "test_input_required_result_capabilities", description="Asks only what the client can answer"
    )
    async def capabilities(arguments: NoArguments, ctx: Context) -> str:
        possible: dict[str, Question[Any]] = {
            "elicit_input": Elicit("Elicitation input", ValueForm),
            "sample_input": SampleModel(messages=(_user("Sample request"),), max_tokens=50),
        }
        questions = {key: question for key, question in possible.items() if ctx.can_ask(question)}
        if not questions:
            return "No supported capabilities declared"
        return f"capabilities-ok: received {', '.join(await ctx.ask(questions))}"


def _user(text: str) -> SamplingMessage:
    return SamplingMessage(role="user", content={"type": "text", "text": text})


def _told(elicited: ElicitationResult) -> str:
    return f"action={elicited.action}, content={json.dumps(elicited.content or {})}"


def _given(elicited: ElicitationResult, field: str) -> Any:
    return (elicited.content or {}).get(field, f"({elicited.action})")
