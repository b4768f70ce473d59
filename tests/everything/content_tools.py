"""Tools that return each kind of content, or an error."""

from __future__ import annotations

import json

from dittybag.protocol.argument_schemas import NoArguments
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server
from dittybag.protocol.types import Audio, Content, EmbeddedResource, Image, ResourceLink, Text, TextContents
from dittybag.protocol.wire_errors import ToolError
from tests.everything import media_samples


def register(server: Server) -> None:
    @server.tool("test_simple_text", description="Returns text")
    def simple_text(arguments: NoArguments, ctx: Context) -> str:
        return "This is a simple text response for testing."

    @server.tool("test_image_content", description="Returns an image")
    def image_content(arguments: NoArguments, ctx: Context) -> Content:
        return _image()

    @server.tool("test_audio_content", description="Returns audio")
    def audio_content(arguments: NoArguments, ctx: Context) -> Content:
        return Audio(data=media_samples.WAV, mime_type="audio/wav")

    @server.tool("test_embedded_resource", description="Returns an embedded resource")
    def embedded_resource(arguments: NoArguments, ctx: Context) -> Content:
        return EmbeddedResource(
            resource=TextContents(
                uri="test://embedded-resource",
                mime_type="text/plain",
                text="This is an embedded resource content.",
            )
        )

    @server.tool("test_multiple_content_types", description="Returns text, an image and a resource")
    def multiple_content_types(arguments: NoArguments, ctx: Context) -> list[Content]:
        return [
            Text(text="Multiple content types test:"),
            _image(),
            EmbeddedResource(
                resource=TextContents(
                    uri="test://mixed-content-resource",
                    mime_type="application/json",
                    text=json.dumps({"test": "data", "value": 123}),
                )
            ),
        ]

    @server.tool("test_resource_link", description="Returns a link to a resource")
    def resource_link(arguments: NoArguments, ctx: Context) -> Content:
        return ResourceLink(
            uri="test://static-text",
            name="static-text",
            title="Static text",
            description="The resource that never changes",
            mime_type="text/plain",
        )

    @server.tool("test_error_handling", description="Always fails")
    def error_handling(arguments: NoArguments, ctx: Context) -> str:
        raise ToolError("This tool intentionally returns an error for testing")


def _image() -> Image:
    return Image(data=media_samples.PNG, mime_type="image/png")
