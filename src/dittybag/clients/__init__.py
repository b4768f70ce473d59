"""MCP clients on this machine: where their configuration files are, and how they are edited."""
