"""Calls with an idempotency key are carried out once, however often and through whichever server."""

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
from tests.protocol.transports.http.runner import Running
from tests.storage_contract.backends import Backend, PostgresSchemas
from tests.wire import Wire

Json = dict[str, Any]
Way = Literal["stdio", "http"]

FIELD = "dittybag/idempotencyKey"
SERVER = "dittybag"
DYING = "tests.storage_contract.dying_server"

numbers = count(1)


class Client(Protocol):
    """Somebody at a server process."""

    def call(
        self, tool: str, arguments: Json, key: Any = None, *, stateless: bool = False, header: str = ""
    ) -> Json:
        """The result of a call."""
        ...

    def kill(self) -> None: ...


def params_of(tool: str, arguments: Json, key: Any, *, stateless: bool) -> Json:
    meta: Json = dict(ENVELOPE) if stateless else {}
    if key is not None:
        meta[FIELD] = key
    return {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})}


class StdioClient:
    def __init__(self, wire: Wire) -> None:
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
            # News of what was changed.
            assert "id" not in answer
        result: Json = answer["result"]
        return result

    def kill(self) -> None:
        self.wire.process.kill()
        self.wire.process.wait()


class HttpClient:
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


def shared(result: Json) -> Json:
    """As much of a result as all revisions have in it."""
    return {name: result.get(name) for name in ("content", "isError")}


class Servers:
    """Server processes on one workspace."""

    def __init__(self, way: Way, place: str, folder: Path) -> None:
        self.way = way
        self.place = place
        self._folder = folder
        self._stack = ExitStack()

    def start(self, module: str = SERVER) -> Client:
        home = {"DITTYBAG_HOME": str(self._folder)}
        if self.way == "stdio":
            wire = Wire(module, "serve", "--db", self.place, env=home)
            return StdioClient(self._stack.enter_context(wire))
        begin = () if module == SERVER else ("serve", "--http", "127.0.0.1:0")
        host = HttpServerProcess(*begin, "--db", self.place, module=module, env=home)
        return HttpClient(self._stack.enter_context(host))

    def close(self) -> None:
        self._stack.close()


#: The transports are compared on one backend.
both_ways = pytest.mark.parametrize(
    ("backend", "way"),
    [("sqlite", "stdio"), ("sqlite", "http"), ("postgres", "http")],
    indirect=["backend"],
    scope="session",
)


@pytest.fixture
def servers(backend: Backend, way: Way, tmp_path: Path) -> Iterator[Servers]:
    made = Servers(way, backend.new_place(), tmp_path)
    yield made
    made.close()


def new_key() -> str:
    return f"key-{next(numbers)}"


def changes(client: Client) -> int:
    """The number of the last change."""
    text = client.call("list_changes", {"limit": 1})["content"][0]["text"]
    number: int = msgspec.json.decode(text)["changes"][0]["change"]
    return number


def said(result: Json) -> str:
    text: str = result["content"][0]["text"]
    return text


def titles(client: Client) -> list[str]:
    tasks = msgspec.json.decode(said(client.call("task_list", {"show_completed": True, "limit": 100})))
    return [task["title"] for task in tasks]


@both_ways
def test_a_call_that_comes_again_is_answered_the_same_and_not_done_again(servers: Servers) -> None:
    first, second = servers.start(), servers.start()
    for stateless in (False, True):
        key = new_key()
        made = first.call("task_create", {"title": "once"}, key, stateless=stateless)
        assert not made.get("isError"), made
        before = changes(first)
        for client in (first, second, first):
            assert client.call("task_create", {"title": "once"}, key, stateless=stateless) == made
            otherwise = client.call("task_create", {"title": "once"}, key, stateless=not stateless)
            assert shared(otherwise) == shared(made)
        first.kill()
        first = servers.start()
        assert first.call("task_create", {"title": "once"}, key, stateless=stateless) == made
        assert changes(second) == before
    assert titles(first) == ["once", "once"]


@both_ways
def test_a_key_that_comes_with_another_request_is_refused(servers: Servers) -> None:
    client = servers.start()
    client.call("task_create", {"title": "one"}, "k")
    before = changes(client)
    others: list[tuple[str, Json]] = [
        ("task_create", {"title": "two"}),
        ("task_create", {"title": "one", "priority": 5}),
        ("create_prompt", {"name": "one", "content": "x"}),
        ("add_prompt", {"title": "one", "content": "x"}),
    ]
    for tool, arguments in others:
        refused = client.call(tool, arguments, "k")
        assert refused["isError"] is True, tool
        assert "The idempotency key 'k' was already used for another request" in said(refused)
    assert msgspec.json.decode(said(refused))["error"]["code"] == "KEY_REUSED"
    assert changes(client) == before


@both_ways
def test_what_failed_may_be_tried_again_with_the_same_key(servers: Servers) -> None:
    client = servers.start()
    assert client.call("task_delete", {"task_id": 1}, "k")["isError"] is True
    assert client.call("task_create", {"title": ""}, "k")["isError"] is True
    client.call("task_create", {"title": "there now"})
    assert not client.call("task_delete", {"task_id": 1}, "k").get("isError")
    # And that is what comes again.
    assert not client.call("task_delete", {"task_id": 1}, "k").get("isError")
    assert client.call("task_delete", {"task_id": 1}, "other")["isError"] is True


@both_ways
def test_calls_without_a_key_are_done_each_time_and_reading_needs_none(servers: Servers) -> None:
    client = servers.start()
    for _ in range(2):
        assert not client.call("task_create", {"title": "same"}).get("isError")
    listed = client.call("task_list", {}, "k")
    client.call("task_create", {"title": "more"}, "k")
    assert len(titles(client)) == 3
    # The key is not for this one, whatever it is.
    for key in ("k", "not valid", 7):
        assert client.call("task_list", {}, key) != listed


PROMPT = {"name": "p", "content": "Words"}
RESOURCE = {"name": "r", "uri": "file:///r", "content": "Words"}
#: What each tool is called with, and what has to be there before.
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
    "undo_change": ({"change": 2}, [("task_create", {"title": "t"})]),
}


def test_every_tool_that_writes_takes_a_key(backend: Backend, tmp_path: Path) -> None:
    assert WRITES.keys() == {tool.name for tool in PROFILES["all"].tools if tool.effect.writes}
    # Each in a workspace of its own, all through stdio: the transports have been compared.
    for tool, (arguments, needed) in WRITES.items():
        servers = Servers("stdio", backend.new_place(), tmp_path)
        try:
            client = servers.start()
            for before, its_arguments in needed:
                assert not client.call(before, its_arguments).get("isError")
            made = client.call(tool, arguments, "k")
            assert not made.get("isError"), (tool, made)
            done = changes(client)
            assert done == len(needed) + 2, tool
            assert client.call(tool, arguments, "k") == made, tool
            assert changes(client) == done, tool
        finally:
            servers.close()
        if isinstance(backend, PostgresSchemas) and tool == "create_resource":
            # What the tools do to the store is the same everywhere.
            break


def test_a_key_that_is_none_is_refused(tmp_path: Path) -> None:
    servers = Servers("stdio", str(tmp_path / "x.db"), tmp_path)
    try:
        client = servers.start()
        keys: list[Any] = ["", "x" * 129, "a b", "tab\t", "ü", "\x7f", 7, True, ["k"], {"k": 1}]
        for key in keys:
            refused = client.call("task_create", {"title": "t"}, key)
            assert refused["isError"] is True, key
            assert "An idempotency key must be 1-128 visible ASCII characters" in said(refused)
        assert titles(client) == []
        assert not client.call("task_create", {"title": "t"}, "!" + "~" * 127).get("isError")
    finally:
        servers.close()


def test_over_http_the_key_may_be_in_a_header(backend: Backend, tmp_path: Path) -> None:
    servers = Servers("http", backend.new_place(), tmp_path)
    try:
        client = servers.start()
        made = client.call("task_create", {"title": "t"}, header="k")
        otherwise = client.call("task_create", {"title": "t"}, header="k", stateless=True)
        assert shared(otherwise) == shared(made)
        assert client.call("task_create", {"title": "t"}, "k") == made
        assert client.call("task_create", {"title": "t"}, "k", header="k") == made
        assert "was already used for another request" in said(
            client.call("task_create", {"title": "u"}, header="k")
        )
        differing = client.call("task_create", {"title": "t"}, "k", header="other")
        assert "in the header and in `_meta` differ" in said(differing)
        assert "1-128 visible ASCII characters" in said(
            client.call("task_create", {"title": "t"}, header="a b")
        )
        assert titles(client) == ["t"]
        # What has no header knows nothing of those that had.
        assert not client.call("task_create", {"title": "u"}).get("isError")
        assert sorted(titles(client)) == ["t", "u"]
    finally:
        servers.close()


def test_a_key_is_for_the_request_that_has_it_and_not_for_the_next_on_its_connection(tmp_path: Path) -> None:
    with Running.product(tmp_path) as server:
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


@both_ways
def test_two_that_come_at_the_same_moment_are_one(servers: Servers) -> None:
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


@both_ways
def test_a_server_that_dies_before_it_answers_has_done_it_once(servers: Servers) -> None:
    survivor, dying = servers.start(), servers.start(DYING)
    with pytest.raises((AssertionError, OSError)):
        dying.call("task_create", {"title": "t"}, "k")
    assert titles(survivor) == ["t"]
    for stateless in (False, True):
        told = survivor.call("task_create", {"title": "t"}, "k", stateless=stateless)
        assert told["isError"] is True
        words = (
            r"This request was already executed at \S+Z, as change 2; its result is no longer available\."
            r" Read the current state instead of repeating the request"
        )
        assert re.fullmatch(words, said(told)), told
    assert "was already used for another request" in said(survivor.call("task_create", {"title": "u"}, "k"))
    assert titles(survivor) == ["t"]


def test_servers_that_are_killed_at_any_moment_do_nothing_twice(backend: Backend, tmp_path: Path) -> None:
    chance = random.Random(7)
    servers = Servers("stdio", backend.new_place(), tmp_path)
    kills = 6 if isinstance(backend, PostgresSchemas) else 12
    try:
        survivor = servers.start()
        for number in range(kills):
            victim = servers.start()
            assert isinstance(victim, StdioClient)
            arguments, key = {"title": f"title {number}"}, new_key()
            params = params_of("task_create", arguments, key, stateless=False)
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            victim.wire.send(msgspec.json.encode(message))
            end = time.monotonic() + chance.uniform(0, 0.02)
            while time.monotonic() < end:
                pass
            victim.kill()
            again = survivor.call("task_create", arguments, key)
            assert not again.get("isError") or "already executed" in said(again), again
            assert titles(survivor).count(f"title {number}") == 1
    finally:
        servers.close()


def test_a_client_that_hangs_up_finds_the_answer_when_it_comes_again(
    backend: Backend, tmp_path: Path
) -> None:
    servers = Servers("http", backend.new_place(), tmp_path)
    try:
        client = servers.start()
        assert isinstance(client, HttpClient)
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


# What is kept, and for how long


async def made_earlier(store: Store, keys: list[str], age: int) -> None:
    async def work(transaction: Transaction) -> None:
        transaction.now -= age
        for key in keys:
            await transaction.record_idempotency_key("", key, b"d")

    await store.write(work, actor="x")


async def kept(store: Store, keys: list[str]) -> set[str]:
    async def work(transaction: Transaction) -> set[str]:
        return {key for key in keys if await transaction.idempotency.get("", key) is not None}

    return await store.read(work)


async def test_keys_are_remembered_for_a_day_and_forgotten_in_passing(
    backend: Backend, tmp_path: Path
) -> None:
    place = backend.new_place()
    store = await backend.open(place)
    servers = Servers("stdio", place, tmp_path)
    try:
        old, young = [f"old{number}" for number in range(70)], ["young"]
        await made_earlier(store, old, RETENTION + 1_000_000)
        await made_earlier(store, young, RETENTION - 60_000_000)
        client = await asyncio.to_thread(servers.start)
        refused = await asyncio.to_thread(client.call, "task_create", {"title": "t"}, "young")
        assert "was already used for another request" in said(refused)
        # One that is too old is as good as none, even if it is still there.
        made = await asyncio.to_thread(client.call, "task_create", {"title": "t"}, "old69")
        assert not made.get("isError")
        left = await kept(store, old)
        assert "old69" in left
        assert len(left) == 70 - 50
        assert await kept(store, young) == {"young"}
        assert await asyncio.to_thread(client.call, "task_create", {"title": "t"}, "old69") == made
    finally:
        servers.close()
        await store.close()
