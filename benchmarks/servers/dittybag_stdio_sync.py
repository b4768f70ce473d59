"""The echo server with Dittybag's engine and a synchronous handler."""

from msgspec import Struct

from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server
from dittybag.protocol.transports.stdio import run

server = Server("echo", "1.0")


class SyncEchoArguments(Struct, frozen=True):
    text: str


@server.tool("echo", SyncEchoArguments, description="Returns the text.")
def echo(arguments: SyncEchoArguments, ctx: Context) -> str:
    return arguments.text


if __name__ == "__main__":
    run(server)
