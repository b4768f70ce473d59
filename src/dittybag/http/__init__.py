"""MCP over Streamable HTTP, and everything else that this server answers over HTTP except the web UI."""
