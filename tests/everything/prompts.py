"""Prompts with and without arguments, with each kind of content, and one that asks back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from dittybag.protocol import Context, PromptDefinition, Server
from dittybag.protocol.features import PromptReturn
from dittybag.protocol.types import (
    Content,
    EmbeddedResource,
    Image,
    PromptArgument,
    PromptMessage,
    Text,
    TextContents,
)
from tests.everything import media


class ContextForm(Struct):
    context: str


def offer(server: Server) -> None:
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
            description="A prompt that holds a resource",
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
            description="A prompt that holds an image",
            run=_with_image,
        )
    )
    server.add(
        PromptDefinition(
            name="test_input_required_result_prompt",
            title="Prompt with a question",
            description="A prompt that asks the user before it answers",
            run=_with_question,
        )
    )


def _with_arguments(arguments: Mapping[str, str], ctx: Context) -> PromptReturn:
    return f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"


def _second_argument(typed: str, others: Mapping[str, str]) -> Sequence[str]:
    """What follows from the first argument."""
    first = others.get("arg1", "nothing")
    return [value for value in (f"after-{first}", f"beside-{first}") if value.startswith(typed)]


def _with_resource(arguments: Mapping[str, str], ctx: Context) -> PromptReturn:
    contents = TextContents(
        uri=arguments["resourceUri"],
        mime_type="text/plain",
        text="Embedded resource content for testing.",
    )
    return _said(
        EmbeddedResource(resource=contents), Text(text="Please process the embedded resource above.")
    )


def _with_image(arguments: Mapping[str, str], ctx: Context) -> PromptReturn:
    return _said(Image(data=media.PNG, mime_type="image/png"), Text(text="Please analyze the image above."))


async def _with_question(arguments: Mapping[str, str], ctx: Context) -> PromptReturn:
    elicited = await ctx.elicit("What context should the prompt use?", ContextForm, key="user_context")
    return f"Prompt with context: {(elicited.content or {}).get('context', elicited.action)}"


def _said(*contents: Content) -> list[PromptMessage]:
    return [PromptMessage(role="user", content=content) for content in contents]
