"""The fixture server: everything the conformance suite asks for, and what our own tests need besides."""

from __future__ import annotations

from dittybag.protocol import Server
from tests.everything import changes, content, flow, prompts, questions, resources, schemas


def build() -> Server:
    """A new fixture server, with state of its own."""
    server = Server(
        "everything",
        "1.0.0",
        title="Everything",
        description="Every feature of the protocol, for tests",
        instructions="Call any tool: none of them does harm.",
        logging=True,
    )
    for part in (content, schemas, flow, questions, resources, prompts, changes):
        part.offer(server)
    return server
