"""The web UI: server-rendered HTML on top of the services."""
