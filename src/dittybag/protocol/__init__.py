"""The MCP engine: a server for every protocol revision. It imports nothing else of Dittybag."""
