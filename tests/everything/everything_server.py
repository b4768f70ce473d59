"""The everything server: all features that the conformance suite and the interop tests use."""

from __future__ import annotations

from dittybag.protocol.server import Server
from tests.everything import (
    change_triggers,
    client_input_tools,
    content_tools,
    everything_prompts,
    everything_resources,
    long_running_tools,
    schema_tools,
)


def build() -> Server:
    """Return a new everything server with its own state."""
    server = Server(
        "everything",
        "1.0.0",
        title="Everything",
        description="Every feature of the protocol, for tests",
        instructions="Every tool is safe to call.",
        logging=True,
    )
    for part in (
        content_tools,
        schema_tools,
        long_running_tools,
        client_input_tools,
        everything_resources,
        everything_prompts,
        change_triggers,
    ):
        part.register(server)
    return server
