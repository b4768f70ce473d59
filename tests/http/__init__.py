"""Tests of MCP over Streamable HTTP."""
