"""The echo server with the official Python SDK on uvicorn: `python_sdk_http.py PORT MODE`.

`stateless` has no sessions, `session` has them, and `logged` is stateless with uvicorn's access log. All
respond with JSON.
"""

from __future__ import annotations

import sys

import uvicorn
from mcp.server.lowlevel import Server
from python_sdk import call_tool, list_tools

if __name__ == "__main__":
    port, mode = sys.argv[1:]
    server = Server("echo", version="1.0", on_list_tools=list_tools, on_call_tool=call_tool)
    application = server.streamable_http_app(json_response=True, stateless_http=mode != "session")
    level = "info" if mode == "logged" else "warning"
    uvicorn.run(application, host="127.0.0.1", port=int(port), log_level=level)
