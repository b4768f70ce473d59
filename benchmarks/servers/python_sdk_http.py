"""The official Python SDK over HTTP: its low-level server, stateless, with JSON responses, on uvicorn.

`python_sdk_http.py PORT default` uses the SDK's defaults. `tuned` disables per-request work that this server
does not need.
"""

from __future__ import annotations

import sys

import uvicorn
from mcp.server.lowlevel import Server
from python_sdk import TOOLS, call_tool, list_tools


def build(kind: str) -> Server:
    if kind == "default":
        return Server("echo", version="1.0", on_list_tools=list_tools, on_call_tool=call_tool)
    # Without this, the SDK requests its own list of tools for the schema at every call.
    schemas = {tool.name: tool.input_schema for tool in TOOLS.tools}
    server = Server(
        "echo",
        version="1.0",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=schemas.get,
    )
    # The default is a tracing span for every message, which is not collected here.
    server.middleware.clear()
    return server


if __name__ == "__main__":
    application = build(sys.argv[2]).streamable_http_app(json_response=True, stateless_http=True)
    # The defaults, without the access log: Dittybag does not write one either.
    uvicorn.run(application, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
