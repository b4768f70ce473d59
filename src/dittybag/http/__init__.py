"""What Dittybag adds to the MCP endpoint: authentication, idempotency keys, stored sessions, the bare endpoint."""
