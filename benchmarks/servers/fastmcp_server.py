"""The echo server with FastMCP, without structured results: on stdio, or with `PORT MODE` on HTTP."""

import sys

from fastmcp import FastMCP

server = FastMCP("echo", version="1.0")


@server.tool(output_schema=None, description="Returns the text.")
async def echo(text: str) -> str:
    return text


if __name__ == "__main__":
    if len(sys.argv) == 1:
        server.run("stdio", show_banner=False, log_level="ERROR")
    else:
        server.run(
            "http",
            show_banner=False,
            log_level="WARNING",
            host="127.0.0.1",
            port=int(sys.argv[1]),
            json_response=True,
            stateless_http=sys.argv[2] != "session",
        )
