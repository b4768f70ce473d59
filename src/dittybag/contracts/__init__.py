"""Where Dittybag meets MCP: one module per contract, and the profiles that put them together."""
