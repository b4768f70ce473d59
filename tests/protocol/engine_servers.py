"""Servers for the tests of the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from dittybag.protocol.features import PromptDefinition, ResourceDefinition, ResourceTemplateDefinition
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server, ServerLimits
from dittybag.protocol.types import Icon, PromptArgument, ToolAnnotations
from dittybag.protocol.wire_errors import ToolError


class EchoArguments(Struct):
    text: str


class OrderArguments(Struct, forbid_unknown_fields=True):
    """Arguments with every kind of constraint."""

    title: Annotated[str, Meta(min_length=1, max_length=20, description="The title")]
    count: Annotated[int, Meta(ge=1, le=10)]
    speed: Literal["slow", "fast"] = "slow"
    tags: Annotated[list[str], Meta(max_length=3)] = []
    note: str | None = None


class SumResult(Struct):
    total: int


class AddArguments(Struct):
    a: int
    b: int


def full_server(*, limits: ServerLimits | None = None, page_size: int = 1000) -> Server:
    """Return a server that supports every method of every revision."""
    server = Server(
        "full",
        "1.2.3",
        title="Full",
        description="One of everything",
        website_url="https://example.org",
        icons=(Icon(src="https://example.org/icon.png"),),
        instructions="A server for tests.",
        logging=True,
        limits=limits,
        page_size=page_size,
    )

    @server.tool("echo", EchoArguments, title="Echo", annotations=ToolAnnotations(read_only_hint=True))
    async def echo(arguments: EchoArguments, ctx: Context) -> str:
        return arguments.text

    @server.tool("order", OrderArguments, description="Places an order")
    def order(arguments: OrderArguments, ctx: Context) -> str:
        return f"{arguments.count} x {arguments.title}"

    @server.tool("add", AddArguments, output=SumResult)
    def add(arguments: AddArguments, ctx: Context) -> SumResult:
        return SumResult(arguments.a + arguments.b)

    @server.tool("fail")
    async def fail(arguments: object, ctx: Context) -> str:
        raise ToolError("The cupboard is bare; fill it first")

    @server.tool("crash")
    async def crash(arguments: object, ctx: Context) -> str:
        raise RuntimeError("secret detail")

    @server.tool("exit")
    def exit_(arguments: object, ctx: Context) -> str:
        raise SystemExit(3)

    @server.tool("wait")
    async def wait(arguments: object, ctx: Context) -> str:
        await asyncio.Event().wait()
        return "never"

    server.add(
        PromptDefinition(
            name="greet",
            title="Greeting",
            description="Greets a person",
            arguments=(
                PromptArgument(name="who", title="Who", description="The person to greet", required=True),
                PromptArgument(name="language"),
            ),
            run=lambda arguments, ctx: f"Say hello to {arguments['who']}",
            completions={"language": ["English", "Esperanto", "French"], "who": _people},
        )
    )
    server.add(
        ResourceDefinition(
            uri="memo://one", name="one", mime_type="text/plain", read=lambda ctx: "The first memo", size=14
        )
    )
    server.add(ResourceDefinition(uri="memo://bytes", name="bytes", read=lambda ctx: b"\x00\xff"))
    server.add(
        ResourceTemplateDefinition(
            uri_template="memo://{year}/{name}",
            name="memos",
            read=lambda variables, ctx: f"{variables['name']} of {variables['year']}",
            completions={"year": ["2024", "2025"]},
        )
    )
    return server


def _people(typed: str, others: Mapping[str, str]) -> list[str]:
    return [f"{typed}{number} ({others.get('language', 'any')})" for number in range(150)]
