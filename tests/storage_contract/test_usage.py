"""Usage: how often prompts were used, by which client, and when clients were last seen."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from dittybag.domain.usage import (
    MAX_CLIENTS_OF_PROMPT,
    MAX_CLIENTS_OF_USER,
    OTHER_CLIENTS,
    Client,
    ClientUses,
    PendingUsage,
    PromptUsage,
    PromptUse,
)
from dittybag.services.prompt_service import PromptAddress, PromptChange
from dittybag.services.purge_service import Selection
from tests import forked_processes
from tests.contracts.http_server_process import BOTH, JSON, HttpServerProcess, routing_headers
from tests.contracts.library_fixtures import ENVELOPE, write_twig_library
from tests.stdio_server_process import StdioServerProcess
from tests.storage_contract.backends import Backend
from tests.storage_contract.store_session import ACTOR, StoreSession, open_session


async def use(session: StoreSession, prompt: str, client: str, count: int = 1) -> None:
    await session.workspace.usage.record(PendingUsage({PromptUse(session.project, prompt, client): count}))


async def usage_of(session: StoreSession, prompt: str) -> tuple[int, dict[str, int]]:
    """Return the count of all clients and of each client, in the order of their last uses."""
    usage = await session.workspace.usage.of_prompt(session.caller, prompt)
    return usage.count, {uses.client: uses.count for uses in usage.clients}


async def most_used(session: StoreSession, limit: int = 10) -> list[tuple[str, int]]:
    found = await session.workspace.usage.most_used(session.caller, limit)
    return [(prompt.name, prompt.count) for prompt in found]


async def test_uses_are_counted_by_prompt_and_client(session: StoreSession) -> None:
    first, second = await session.prompt("first"), await session.prompt("second")
    usage = session.workspace.usage
    assert await usage.of_prompt(session.caller, first.id) == PromptUsage(0, ())
    await use(session, first.id, "cursor", 2)
    await use(session, first.id, "shell")
    await use(session, second.id, "cursor")
    await use(session, "team:review", "cursor", 5)
    assert await usage_of(session, first.id) == (3, {"shell": 1, "cursor": 2})
    last = (await usage.of_prompt(session.caller, first.id)).last
    assert isinstance(last, ClientUses)
    assert last.client == "shell"
    assert await most_used(session) == [("team:review", 5), ("first", 3), ("second", 1)]
    assert await most_used(session, 1) == [("team:review", 5)]
    assert await usage.counts(session.caller, [first.id, "team:review", "never"]) == {
        first.id: 3,
        "team:review": 5,
    }
    await use(session, first.id, "cursor", 4)
    assert await usage_of(session, first.id) == (7, {"cursor": 6, "shell": 1})
    other = await open_session(session.store, "other")
    assert await usage_of(other, "team:review") == (0, {})
    assert await most_used(other) == []


async def test_counts_follow_their_prompt_and_project(session: StoreSession) -> None:
    kept, gone = await session.prompt("kept"), await session.prompt("gone")
    for prompt in (kept, gone):
        await use(session, prompt.id, "cursor")
    renamed = PromptChange(name="renamed")
    await session.workspace.prompts.update(session.caller, PromptAddress(name="kept"), renamed)
    await session.delete_prompt("gone")
    deleted = (await session.newest_change()).seq
    assert await most_used(session) == [("renamed", 1)]
    # It may still be handed out when another client deletes it.
    await use(session, gone.id, "cursor")
    await session.undo(deleted)
    assert dict(await most_used(session)) == {"renamed": 1, "gone": 1}
    await session.workspace.purges.run(session.caller, Selection((("prompt", gone.id),)))
    await use(session, gone.id, "cursor")
    assert await usage_of(session, gone.id) == (0, {})
    assert await usage_of(session, kept.id) == (1, {"cursor": 1})

    other = await open_session(session.store, "other")
    await use(other, "team:review", "cursor")
    await session.workspace.projects.delete("other", actor=ACTOR)
    await use(other, "team:review", "cursor")
    left = await session.read(lambda transaction: transaction.usage.of_prompt(other.project, "team:review"))
    assert left.count == 0


async def test_the_number_of_clients_is_bounded(session: StoreSession) -> None:
    prompt = await session.prompt("prompt")
    uses = {
        PromptUse(session.project, prompt.id, f"client {number}"): 1
        for number in range(MAX_CLIENTS_OF_PROMPT + 5)
    }
    clients = tuple(Client("ann", f"client {number}", "1", "http") for number in range(MAX_CLIENTS_OF_USER))
    await session.workspace.usage.record(PendingUsage(uses, clients))
    count, by_client = await usage_of(session, prompt.id)
    assert (count, len(by_client), by_client[OTHER_CLIENTS]) == (len(uses), MAX_CLIENTS_OF_PROMPT + 1, 5)
    newest = Client("ann", "client 0", "2", "stdio"), Client("", "cursor", "1.0", "stdio")
    await session.workspace.usage.record(PendingUsage({}, newest))
    seen = await session.workspace.usage.clients(session.caller)
    assert {(client.user, client.name, client.version) for client in seen[:2]} == {
        ("ann", "client 0", "2"),
        ("", "cursor", "1.0"),
    }
    assert len(seen) <= MAX_CLIENTS_OF_USER + 1


def request(method: str, **params: Any) -> bytes:
    meta = {**ENVELOPE, "io.modelcontextprotocol/clientInfo": {"name": "web\nagent", "version": "2.0"}}
    frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return msgspec.json.encode(frame)


def run_stdio(place: str, home: dict[str, str], *flags: str, talk: Callable[[Any], None]) -> None:
    """Talk to a server on stdio until it ends in order."""
    with StdioServerProcess("dittybag", "serve", "--db", place, *flags, env=home) as wire:
        wire.handshake()
        talk(
            lambda method, **params: wire.ask({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        )
        wire.hang_up()
        assert wire.rest()[2] == 0


async def test_clients_of_all_interfaces_are_counted(backend: Backend, tmp_path: Path) -> None:
    place, home = backend.new_location(), {"DITTYBAG_HOME": str(tmp_path)}
    write_twig_library(tmp_path / "libraries" / "team", {"review": "Look"})
    store = await backend.open(place)
    session = await open_session(store)
    prompt = await session.prompt("greet", "Hello {{ who }}", arguments=())
    uri = "skill://stored-prompts/greet/SKILL.md"

    def use_all(ask: Any) -> None:
        for answer in (
            ask("tools/list"),
            ask("prompts/get", name="greet"),
            ask("prompts/get", name="team:review"),
            ask("tools/call", name="use_prompt", arguments={"ref": "greet"}),
            ask("tools/call", name="use_prompt", arguments={"ref": "greet", "offset": 3}),
            ask("resources/read", uri=uri),
        ):
            assert "result" in answer, answer

    run_stdio(place, home, talk=lambda ask: ask("ping"))
    run_stdio(place, home, "--read-only", talk=use_all)
    assert await session.workspace.usage.clients(session.caller) == []
    assert await most_used(session) == []

    run_stdio(place, home, talk=use_all)
    assert await usage_of(session, prompt.id) == (3, {"test": 3})
    with HttpServerProcess("--db", place, env=home) as server:
        for name in ("greet", "team:review"):
            frame = request("prompts/get", name=name)
            headers = {"Content-Type": JSON, "Accept": BOTH, **routing_headers(frame)}
            assert "result" in server.ask("POST", "/mcp", frame, headers).message()
        assert server.end()[0] == 0
    for name in ("greet", "team:review"):
        done = forked_processes.run(
            "dittybag", "prompt", "render", name, "--db", place, env={**os.environ, **home}
        )
        assert done.returncode == 0, done
    assert await usage_of(session, prompt.id) == (5, {"shell": 1, "web agent": 1, "test": 3})
    assert await usage_of(session, "team:review") == (3, {"shell": 1, "web agent": 1, "test": 1})
    seen = await session.workspace.usage.clients(session.caller)
    assert [(client.name, client.version, client.transport) for client in seen] == [
        ("web agent", "2.0", "http"),
        ("test", "1", "stdio"),
    ]
    await store.close()
