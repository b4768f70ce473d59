"""Prompts with and without arguments, with each kind of content, and with a request for user input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from dittybag.protocol.features import PromptDefinition, PromptReturn
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server
from dittybag.protocol.types import (
    Content,
    EmbeddedResource,
    Image,
    PromptArgument,
    PromptMessage,
    Text,
    TextContents,
)
from tests.everything import media_samples


class ContextForm(Struct):
    context: str


def register(server: Server) -> None:
    server.add(
        PromptDefinition(
            name="test_simple_prompt",
            title="Simple prompt",
            description="A prompt without arguments",
            run=lambda _arguments, _ctx: "This is a simple prompt for testing.",
        )
    )
    server.add(
        PromptDefinition(
            name="test_prompt_with_arguments",
            title="Prompt with arguments",
            description="A prompt with two required arguments",
            arguments=(
                PromptArgument(name="arg1", description="First test argument", required=True),
                PromptArgument(name="arg2", description="Second test argument", required=True),
            ),
            run=_with_arguments,
            completions={"arg1": ("paris", "park", "party", "test"), "arg2": _second_argument},
        )
    )
    server.add(
        PromptDefinition(
            name="test_prompt_with_embedded_resource",
            title="Prompt with a resource",
            description="A prompt with an embedded resource",
            arguments=(
                PromptArgument(name="resourceUri", description="URI of the resource to embed", required=True),
            ),
            run=_with_resource,
            completions={"resourceUri": ("test://static-text", "test://static-binary")},
        )
    )
    server.add(
        PromptDefinition(
            name="test_prompt_with_image",
            title="Prompt with an image",
            description="A prompt with an image",
            run=_with_image,
        )
    )
    server.add(
        PromptDefinition(
            name="test_input_required_result_prompt",
            title="Prompt with a question",
            description="A prompt that asks the user for input",
            run=_with_question,
        )
    )


def _with_arguments(arguments: Mapping[str, str], ctx: Context) -> PromptReturn:
    return f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"


def _second_argument(typed: str, others: Mapping[str, str]) -> Sequence[str]:
    """Complete `arg2` from the value of `arg1`."""
    first = others.get("arg1", "nothing")
    return [value for value in (f"after-{first}", f"beside-{first}") if value.startswith(typed)]


def _with_resource(arguments: Mapping[str, str], ctx: Context) -> PromptReturn:
    contents = TextContents(
        uri=arguments["resourceUri"],
        mime_type="text/plain",
        text="Embedded resource content for testing.",
    )
    return _user_messages(
        EmbeddedResource(resource=contents), Text(text="Please process the embedded resource above.")
    )


def _with_image(arguments: Mapping[str, str], ctx: Context) -> PromptReturn:
    return _user_messages(
        Image(data=media_samples.PNG, mime_type="image/png"), Text(text="Please analyze the image above.")
    )


async def _with_question(arguments: Mapping[str, str], ctx: Context) -> PromptReturn:
    elicited = await ctx.elicit("What context should the prompt use?", ContextForm, key="user_context")
    return f"Prompt with context: {(elicited.content or {}).get('context', elicited.action)}"


def _user_messages(*contents: Content) -> list[PromptMessage]:
    return [PromptMessage(role="user", content=content) for content in contents]
