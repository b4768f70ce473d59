"""The server for the examples in the protocol contract; `python -m` serves it on stdio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from dittybag.protocol.features import (
    PromptDefinition,
    PromptReturn,
    ResourceDefinition,
    ResourceTemplateDefinition,
)
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server
from dittybag.protocol.types import (
    Capabilities,
    Content,
    EmbeddedResource,
    Image,
    ListFeature,
    PromptArgument,
    PromptMessage,
    PromptResult,
    ResourceFeature,
    Text,
    TextContents,
)


class Search(Struct):
    query: Annotated[str, Meta(description="Search query")]


def build() -> Server:
    server = Server(
        "my-server",
        "1.0.0",
        capabilities=Capabilities(tools=ListFeature(), resources=ResourceFeature(), prompts=ListFeature()),
    )

    @server.tool("search_documents", Search, description="Search internal documents")
    async def search_documents(arguments: Search, ctx: Context) -> str:
        return f"Found 3 documents matching '{arguments.query}'..."

    @server.tool("search", Search)
    def search(arguments: Search, ctx: Context) -> str:
        return "Search results..."

    @server.tool("content")
    def content(arguments: object, ctx: Context) -> list[Content]:
        file = TextContents(uri="file:///path/to/file", text="File contents", mime_type="text/plain")
        return [
            Text(text="Hello, world!"),
            Image(data=b"base64", mime_type="image/png"),
            EmbeddedResource(resource=file),
        ]

    server.add(
        ResourceDefinition(
            uri="file:///config/settings.json",
            name="Application Settings",
            mime_type="application/json",
            read=lambda ctx: '{"debug": true}',
        )
    )
    server.add(
        ResourceTemplateDefinition(
            uri_template="db://tables/{table_name}/schema",
            name="Table Schema",
            description="Database table schema",
            read=lambda variables, ctx: f"CREATE TABLE {variables['table_name']} ()",
        )
    )

    def code_review(arguments: Mapping[str, str], ctx: Context) -> PromptReturn:
        text = Text(text=f"Please review this code: {arguments['code']}")
        return PromptResult(
            description="Code review prompt", messages=(PromptMessage(role="user", content=text),)
        )

    server.add(
        PromptDefinition(
            name="code_review",
            description="Review code for issues",
            arguments=(PromptArgument(name="code", description="Code to review", required=True),),
            run=code_review,
        )
    )
    return server


if __name__ == "__main__":
    from dittybag.protocol.transports import stdio

    stdio.run(build())
