"""A call with an idempotency key is executed once, however often it is repeated and on whichever server."""

from __future__ import annotations

import asyncio
import http.client
import random
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
import pytest

from dittybag.contracts.profiles import PROFILES
from dittybag.domain.idempotency import RETENTION
from dittybag.domain.ports import Store, Transaction
from tests.contracts.http_server_process import BOTH, JSON, HttpServerProcess, routing_headers
from tests.contracts.library_fixtures import ENVELOPE
from tests.http.spawned_server import SpawnedServer
from tests.stdio_server_process import StdioServerProcess
from tests.storage_contract.backends import Backend, PostgresSchemas

Json = dict[str, Any]
Transport = Literal["stdio", "http"]

FIELD = "dittybag/idempotencyKey"
SERVER = "dittybag"
CRASHING = "tests.storage_contract.crashing_server"

numbers = count(1)


class ToolClient(Protocol):
    """A client of a server process."""

    def call(
        self, tool: str, arguments: Json, key: Any = None, *, stateless: bool = False, header: str = ""
    ) -> Json:
        """Call a tool and return its result."""
        ...

    def kill(self) -> None: ...


def params_of(tool: str, arguments: Json, key: Any, *, stateless: bool) -> Json:
    meta: Json = dict(ENVELOPE) if stateless else {}
    if key is not None:
        meta[FIELD] = key
    return {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})}


class StdioToolClient:
    def __init__(self, wire: StdioServerProcess) -> None:
        self.wire = wire
        wire.handshake()

    def call(
        self, tool: str, arguments: Json, key: Any = None, *, stateless: bool = False, header: str = ""
    ) -> Json:
        assert not header
        params = params_of(tool, arguments, key, stateless=stateless)
        message = {"jsonrpc": "2.0", "id": next(numbers), "method": "tools/call", "params": params}
        self.wire.send(msgspec.json.encode(message))
        while (answer := self.wire.message()).get("id") != message["id"]:
            # A change notification.
            assert "id" not in answer
        result: Json = answer["result"]
        return result

    def kill(self) -> None:
        self.wire.process.kill()
        self.wire.process.wait()


class HttpToolClient:
    def __init__(self, host: HttpServerProcess) -> None:
        self.host = host

    def call(
        self, tool: str, arguments: Json, key: Any = None, *, stateless: bool = False, header: str = ""
    ) -> Json:
        params = params_of(tool, arguments, key, stateless=stateless)
        message = {"jsonrpc": "2.0", "id": next(numbers), "method": "tools/call", "params": params}
        frame = msgspec.json.encode(message)
        headers = {"Content-Type": JSON, "Accept": BOTH, **routing_headers(frame)}
        if header:
            headers["Idempotency-Key"] = header
        result: Json = self.host.ask("POST", "/mcp", frame, headers).message()["result"]
        return result

    def kill(self) -> None:
        self.host.process.kill()
        self.host.process.wait()


def common_fields(result: Json) -> Json:
    """Return the fields of a result that all revisions have."""
    return {name: result.get(name) for name in ("content", "isError")}


class ServerGroup:
    """Server processes on one workspace."""

    def __init__(self, transport: Transport, place: str, folder: Path) -> None:
        self.transport = transport
        self.place = place
        self._folder = folder
        self._stack = ExitStack()

    def start(self, module: str = SERVER) -> ToolClient:
        home = {"DITTYBAG_HOME": str(self._folder)}
        if self.transport == "stdio":
            wire = StdioServerProcess(module, "serve", "--db", self.place, env=home)
            return StdioToolClient(self._stack.enter_context(wire))
        begin = () if module == SERVER else ("serve", "--http", "127.0.0.1:0")
        host = HttpServerProcess(*begin, "--db", self.place, module=module, env=home)
        return HttpToolClient(self._stack.enter_context(host))

    def close(self) -> None:
        self._stack.close()


#: The transports are compared on one backend.
both_transports = pytest.mark.parametrize(
    ("backend", "transport"),
    [("sqlite", "stdio"), ("sqlite", "http"), ("postgres", "http")],
    indirect=["backend"],
    scope="session",
)


@pytest.fixture
def servers(backend: Backend, transport: Transport, tmp_path: Path) -> Iterator[ServerGroup]:
    made = ServerGroup(transport, backend.new_location(), tmp_path)
    yield made
    made.close()


def new_key() -> str:
    return f"key-{next(numbers)}"


def newest_seq(client: ToolClient) -> int:
    """Return the `seq` of the newest change."""
    text = client.call("list_changes", {"limit": 1})["content"][0]["text"]
    number: int = msgspec.json.decode(text)["changes"][0]["change"]
    return number


def text_of(result: Json) -> str:
    text: str = result["content"][0]["text"]
    return text


def titles(client: ToolClient) -> list[str]:
    tasks = msgspec.json.decode(text_of(client.call("task_list", {"show_completed": True, "limit": 100})))
    return [task["title"] for task in tasks]


@both_transports
def test_a_repeated_call_returns_the_same_result_and_is_not_executed_again(servers: ServerGroup) -> None:
    first, second = servers.start(), servers.start()
    for stateless in (False, True):
        key = new_key()
        made = first.call("task_create", {"title": "once"}, key, stateless=stateless)
        assert not made.get("isError"), made
        before = newest_seq(first)
        for client in (first, second, first):
            assert client.call("task_create", {"title": "once"}, key, stateless=stateless) == made
            otherwise = client.call("task_create", {"title": "once"}, key, stateless=not stateless)
            assert common_fields(otherwise) == common_fields(made)
        first.kill()
        first = servers.start()
        assert first.call("task_create", {"title": "once"}, key, stateless=stateless) == made
        assert newest_seq(second) == before
    assert titles(first) == ["once", "once"]


@both_transports
def test_a_key_reused_for_another_request_is_refused(servers: ServerGroup) -> None:
    client = servers.start()
    client.call("task_create", {"title": "one"}, "k")
    before = newest_seq(client)
    others: list[tuple[str, Json]] = [
        ("task_create", {"title": "two"}),
        ("task_create", {"title": "one", "priority": 5}),
        ("create_prompt", {"name": "one", "content": "x"}),
        ("add_prompt", {"title": "one", "content": "x"}),
    ]
    for tool, arguments in others:
        refused = client.call(tool, arguments, "k")
        assert refused["isError"] is True, tool
        assert "The idempotency key 'k' was already used for another request" in text_of(refused)
    assert msgspec.json.decode(text_of(refused))["error"]["code"] == "KEY_REUSED"
    assert newest_seq(client) == before


@both_transports
def test_a_failed_call_can_be_retried_with_the_same_key(servers: ServerGroup) -> None:
    client = servers.start()
    assert client.call("task_delete", {"task_id": 1}, "k")["isError"] is True
    assert client.call("task_create", {"title": ""}, "k")["isError"] is True
    client.call("task_create", {"title": "there now"})
    assert not client.call("task_delete", {"task_id": 1}, "k").get("isError")
    # The repeated call returns the stored result.
    assert not client.call("task_delete", {"task_id": 1}, "k").get("isError")
    assert client.call("task_delete", {"task_id": 1}, "other")["isError"] is True


@both_transports
def test_calls_without_a_key_are_executed_each_time_and_read_only_tools_ignore_keys(
    servers: ServerGroup,
) -> None:
    client = servers.start()
    for _ in range(2):
        assert not client.call("task_create", {"title": "same"}).get("isError")
    listed = client.call("task_list", {}, "k")
    client.call("task_create", {"title": "more"}, "k")
    assert len(titles(client)) == 3
    # Read-only tools ignore any key.
    for key in ("k", "not valid", 7):
        assert client.call("task_list", {}, key) != listed


PROMPT = {"name": "p", "content": "Words"}
RESOURCE = {"name": "r", "uri": "file:///r", "content": "Words"}
#: The arguments of each tool, and the calls it needs before.
WRITES: dict[str, tuple[Json, list[tuple[str, Json]]]] = {
    "create_prompt": (PROMPT, []),
    "add_prompt": ({"title": "P", "content": "Words"}, []),
    "update_prompt": ({"name": "p", "content": "Other"}, [("create_prompt", PROMPT)]),
    "delete_prompt": ({"name": "p"}, [("create_prompt", PROMPT)]),
    "create_resource": (RESOURCE, []),
    "update_resource": ({"name": "r", "content": "Other"}, [("create_resource", RESOURCE)]),
    "delete_resource": ({"name": "r"}, [("create_resource", RESOURCE)]),
    "task_create": ({"title": "t"}, []),
    "task_update": ({"task_id": 1, "title": "u"}, [("task_create", {"title": "t"})]),
    "task_complete": ({"task_id": 1}, [("task_create", {"title": "t"})]),
    "task_delete": ({"task_id": 1}, [("task_create", {"title": "t"})]),
    "task_add": ({"tasks": [{"title": "t"}]}, []),
    "task_next": ({}, [("task_create", {"title": "t"})]),
    "task_done": ({"ref": "task:1"}, [("task_create", {"title": "t"})]),
    "task_release": ({"ref": "task:1", "fence": 3}, [("task_create", {"title": "t"}), ("task_next", {})]),
    "undo_change": ({"change": 2}, [("task_create", {"title": "t"})]),
}


def test_every_tool_that_writes_accepts_a_key(backend: Backend, tmp_path: Path) -> None:
    assert WRITES.keys() == {tool.name for tool in PROFILES["all"].tools if tool.effect.writes}
    # Each tool has its own workspace. All use stdio: other tests compare the transports.
    for tool, (arguments, needed) in WRITES.items():
        servers = ServerGroup("stdio", backend.new_location(), tmp_path)
        try:
            client = servers.start()
            for before, its_arguments in needed:
                assert not client.call(before, its_arguments).get("isError")
            made = client.call(tool, arguments, "k")
            assert not made.get("isError"), (tool, made)
            done = newest_seq(client)
            assert done == len(needed) + 2, tool
            assert client.call(tool, arguments, "k") == made, tool
            assert newest_seq(client) == done, tool
        finally:
            servers.close()
        if isinstance(backend, PostgresSchemas) and tool == "create_resource":
            # The tools use the store in the same way on all backends.
            break


def test_an_invalid_key_is_refused(tmp_path: Path) -> None:
    servers = ServerGroup("stdio", str(tmp_path / "x.db"), tmp_path)
    try:
        client = servers.start()
        keys: list[Any] = ["", "x" * 129, "a b", "tab\t", "ü", "\x7f", 7, True, ["k"], {"k": 1}]
        for key in keys:
            refused = client.call("task_create", {"title": "t"}, key)
            assert refused["isError"] is True, key
            assert "An idempotency key must be 1-128 visible ASCII characters" in text_of(refused)
        assert titles(client) == []
        assert not client.call("task_create", {"title": "t"}, "!" + "~" * 127).get("isError")
    finally:
        servers.close()


def test_the_key_can_be_in_an_http_header(backend: Backend, tmp_path: Path) -> None:
    servers = ServerGroup("http", backend.new_location(), tmp_path)
    try:
        client = servers.start()
        made = client.call("task_create", {"title": "t"}, header="k")
        otherwise = client.call("task_create", {"title": "t"}, header="k", stateless=True)
        assert common_fields(otherwise) == common_fields(made)
        assert client.call("task_create", {"title": "t"}, "k") == made
        assert client.call("task_create", {"title": "t"}, "k", header="k") == made
        assert "was already used for another request" in text_of(
            client.call("task_create", {"title": "u"}, header="k")
        )
        differing = client.call("task_create", {"title": "t"}, "k", header="other")
        assert "in the header and in `_meta` differ" in text_of(differing)
        assert "1-128 visible ASCII characters" in text_of(
            client.call("task_create", {"title": "t"}, header="a b")
        )
        assert titles(client) == ["t"]
        # A request without the header is not affected by earlier ones with it.
        assert not client.call("task_create", {"title": "u"}).get("isError")
        assert sorted(titles(client)) == ["t", "u"]
    finally:
        servers.close()


def test_a_header_key_does_not_apply_to_the_next_request_on_the_connection(tmp_path: Path) -> None:
    with SpawnedServer.product(tmp_path) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        ids = []
        for number in range(20):
            call = {"name": "task_create", "arguments": {"title": f"t{number // 2}"}}
            frame = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
            headers = {"Content-Type": "application/json"} | (
                {"Idempotency-Key": f"k{number}"} if number % 2 == 0 else {}
            )
            connection.request("POST", "/mcp", msgspec.json.encode(frame), headers)
            answer = msgspec.json.decode(connection.getresponse().read())
            ids.append(msgspec.json.decode(answer["result"]["content"][0]["text"])["id"])
        connection.close()
    assert ids == list(range(1, 21))


@both_transports
def test_concurrent_calls_with_the_same_key_are_executed_once(servers: ServerGroup) -> None:
    clients = [servers.start(), servers.start()]
    rounds = 15
    with ThreadPoolExecutor(len(clients)) as pool:
        for number in range(rounds):
            key, arguments = new_key(), {"title": f"title {number}"}
            calls = [pool.submit(client.call, "task_create", arguments, key) for client in clients]
            answers = [call.result(timeout=20) for call in calls]
            assert answers[0] == answers[1]
            assert not answers[0].get("isError"), answers
    assert sorted(titles(clients[0])) == sorted(f"title {number}" for number in range(rounds))


@both_transports
def test_a_call_whose_server_crashed_before_responding_is_executed_once(servers: ServerGroup) -> None:
    survivor, crashing = servers.start(), servers.start(CRASHING)
    with pytest.raises((AssertionError, OSError)):
        crashing.call("task_create", {"title": "t"}, "k")
    assert titles(survivor) == ["t"]
    for stateless in (False, True):
        refused = survivor.call("task_create", {"title": "t"}, "k", stateless=stateless)
        assert refused["isError"] is True
        words = (
            r"This request was already executed at \S+Z, as change 2; its result is no longer available\."
            r" Read the current state instead of repeating the request"
        )
        assert re.fullmatch(words, text_of(refused)), refused
    assert "was already used for another request" in text_of(
        survivor.call("task_create", {"title": "u"}, "k")
    )
    assert titles(survivor) == ["t"]


def test_calls_to_servers_killed_at_any_moment_are_not_executed_twice(
    backend: Backend, tmp_path: Path
) -> None:
    chance = random.Random(7)
    servers = ServerGroup("stdio", backend.new_location(), tmp_path)
    kills = 6 if isinstance(backend, PostgresSchemas) else 12
    try:
        survivor = servers.start()
        for number in range(kills):
            victim = servers.start()
            assert isinstance(victim, StdioToolClient)
            arguments, key = {"title": f"title {number}"}, new_key()
            params = params_of("task_create", arguments, key, stateless=False)
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            victim.wire.send(msgspec.json.encode(message))
            end = time.monotonic() + chance.uniform(0, 0.02)
            while time.monotonic() < end:
                pass
            victim.kill()
            again = survivor.call("task_create", arguments, key)
            assert not again.get("isError") or "already executed" in text_of(again), again
            assert titles(survivor).count(f"title {number}") == 1
    finally:
        servers.close()


def test_a_client_that_disconnects_gets_the_result_when_it_repeats_the_call(
    backend: Backend, tmp_path: Path
) -> None:
    servers = ServerGroup("http", backend.new_location(), tmp_path)
    try:
        client = servers.start()
        assert isinstance(client, HttpToolClient)
        for number in range(8):
            arguments, key = {"title": f"title {number}"}, new_key()
            params = params_of("task_create", arguments, key, stateless=True)
            frame = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            connection = client.host.connect()
            headers = {"Content-Type": JSON, "Accept": BOTH, **routing_headers(frame)}
            connection.request("POST", "/mcp", frame, headers)
            connection.close()
            assert not client.call("task_create", arguments, key, stateless=True).get("isError")
        assert sorted(titles(client)) == sorted(f"title {number}" for number in range(8))
    finally:
        servers.close()


# Retention of keys


async def record_old_keys(store: Store, keys: list[str], age: int) -> None:
    async def work(transaction: Transaction) -> None:
        transaction.now -= age
        for key in keys:
            await transaction.record_idempotency_key("", key, b"d")

    await store.write(work, actor="x")


async def stored_keys(store: Store, keys: list[str]) -> set[str]:
    async def work(transaction: Transaction) -> set[str]:
        return {key for key in keys if await transaction.idempotency.get("", key) is not None}

    return await store.read(work)


async def test_keys_are_stored_for_a_day_and_pruned_by_later_calls(backend: Backend, tmp_path: Path) -> None:
    place = backend.new_location()
    store = await backend.open(place)
    servers = ServerGroup("stdio", place, tmp_path)
    try:
        old, young = [f"old{number}" for number in range(70)], ["young"]
        await record_old_keys(store, old, RETENTION + 1_000_000)
        await record_old_keys(store, young, RETENTION - 60_000_000)
        client = await asyncio.to_thread(servers.start)
        refused = await asyncio.to_thread(client.call, "task_create", {"title": "t"}, "young")
        assert "was already used for another request" in text_of(refused)
        # An expired key does not count even if it is still stored.
        made = await asyncio.to_thread(client.call, "task_create", {"title": "t"}, "old69")
        assert not made.get("isError")
        left = await stored_keys(store, old)
        assert "old69" in left
        assert len(left) == 70 - 50
        assert await stored_keys(store, young) == {"young"}
        assert await asyncio.to_thread(client.call, "task_create", {"title": "t"}, "old69") == made
    finally:
        servers.close()
        await store.close()
