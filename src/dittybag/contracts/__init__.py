"""What MCP clients see: one module per contract, and the profiles that combine them."""
