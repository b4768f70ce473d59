"""The echo server with Dittybag's engine and an async handler."""

from msgspec import Struct

from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server
from dittybag.protocol.transports.stdio import run

server = Server("echo", "1.0")


class BenchmarkEchoArguments(Struct, frozen=True):
    text: str


@server.tool("echo", BenchmarkEchoArguments, description="Returns the text.")
async def echo(arguments: BenchmarkEchoArguments, ctx: Context) -> str:
    return arguments.text


if __name__ == "__main__":
    run(server)
