"""MCP clients on this machine: the location of their configuration files, and edits to them."""
