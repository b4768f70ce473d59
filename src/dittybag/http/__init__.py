"""What Dittybag adds to the MCP endpoint: authentication, idempotency keys and stored sessions."""
