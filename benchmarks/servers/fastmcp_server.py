"""The echo server with FastMCP, without banner, log and structured results."""

from fastmcp import FastMCP

server = FastMCP("echo", version="1.0")


@server.tool(output_schema=None, description="Returns the text.")
async def echo(text: str) -> str:
    return text


if __name__ == "__main__":
    server.run("stdio", show_banner=False, log_level="ERROR")
