"""Pipelined requests of one connection get the same responses as requests sent one at a time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from tests import postgres_servers
from tests.contracts.contract_replay import TIME, UUID, VARIANTS, ServerVariant
from tests.contracts.http_server_process import HttpServerProcess
from tests.contracts.library_fixtures import ENVELOPE
from tests.contracts.test_concurrent_requests import http_request
from tests.http.raw_connection import RawConnection
from tests.repetitions import SEED, repetitions
from tests.stdio_server_process import StdioServerProcess

#: How many random sequences are compared on each transport and database.
SEQUENCES = repetitions(60, 2000)
MAX_REQUESTS = 12

Request = dict[str, Any]


class Connection(Protocol):
    """A connection that sends several requests before it reads the first response."""

    def pipeline(self, requests: list[Request]) -> list[Any]:
        """Return the responses in the order of the requests."""
        ...


class PipelinedStdio:
    def __init__(self, database: str, stack: ExitStack) -> None:
        self._wire = stack.enter_context(StdioServerProcess("dittybag", "serve", "--db", database))
        self._wire.handshake()

    def pipeline(self, requests: list[Request]) -> list[Any]:
        frames = [
            msgspec.json.encode({"jsonrpc": "2.0", "id": number, **request})
            for number, request in enumerate(requests)
        ]
        self._wire.send(*frames)
        responses: dict[int, Any] = {}
        while len(responses) < len(requests):
            message = self._wire.message(30)
            if "id" in message:
                assert responses.setdefault(message["id"], message) is message, "answered twice"
        return [responses[number] for number in range(len(requests))]


class PipelinedHttp:
    def __init__(self, database: str, stack: ExitStack) -> None:
        host = stack.enter_context(HttpServerProcess("--db", database))
        self._connection = stack.enter_context(RawConnection(host.address[1], seconds=30))

    def pipeline(self, requests: list[Request]) -> list[Any]:
        self._connection.send(b"".join(map(self._encode, requests)))
        responses = []
        for _ in requests:
            response = self._connection.read_response()
            assert response is not None
            responses.append(msgspec.json.decode(response[1]))
        return responses

    @staticmethod
    def _encode(request: Request) -> bytes:
        params = {**request["params"], "_meta": ENVELOPE}
        return http_request(msgspec.json.encode({"jsonrpc": "2.0", "id": 0, **request, "params": params}))


@pytest.fixture(params=VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> ServerVariant:
    found: ServerVariant = request.param
    return found


@pytest.fixture
def connections(
    request: pytest.FixtureRequest, variant: ServerVariant, tmp_path: Path
) -> Iterator[tuple[Connection, Connection]]:
    """Two connections, each to a server with its own empty database."""
    if variant.backend == "postgres":
        server: postgres_servers.PostgresServer = request.getfixturevalue("postgres")
        name = f"order_{variant.transport}_{request.node.originalname[:20]}"
        urls = [server.socket_url(schema=f"{name}_{number}") for number in range(2)]
    else:
        urls = [str(tmp_path / f"{number}.db") for number in range(2)]
    kind = PipelinedStdio if variant.transport == "stdio" else PipelinedHttp
    with ExitStack() as stack:
        first, second = (kind(url, stack) for url in urls)
        yield first, second


def call(tool: str, **arguments: Any) -> Request:
    return {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def ask(method: str, **params: Any) -> Request:
    return {"method": method, "params": params}


def normalise(responses: list[Any]) -> list[str]:
    """Return the responses as texts without times, with ids numbered in the order of their appearance."""
    known: dict[str, str] = {}
    return [
        UUID.sub(
            lambda found: known.setdefault(found[0], f"id {len(known)}"),
            TIME.sub("<time>", msgspec.json.encode({**response, "id": 0}, order="sorted").decode()),
        )
        for response in responses
    ]


class RandomRequests:
    """Random requests that read and write the same few entities."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._count = 0

    def sequence(self) -> list[Request]:
        return [self._request() for _ in range(self._chance.randrange(2, MAX_REQUESTS + 1))]

    def _request(self) -> Request:
        chance = self._chance
        self._count += 1
        name, number = chance.choice("abcd"), chance.randrange(1, 6)
        content = f"Content {self._count} {{{{ x }}}}"
        arguments = [{"name": "x"}]
        return chance.choice(
            [
                call("create_prompt", name=name, content=content),
                call("create_prompt", name=name, content=content, arguments=arguments),
                call("update_prompt", name=name, content=content),
                call("update_prompt", name=name, content=content, arguments=arguments),
                call("delete_prompt", name=name),
                call("add_prompt", title=f"Title {name}", content=content, tags=[name]),
                call("create_resource", name=name, uri=f"memo://{name}", content=content),
                call("update_resource", name=name, content=content),
                call("delete_resource", name=name),
                call("task_create", title=f"Task {name}", priority=number),
                call("task_update", task_id=number, notes=content),
                call("task_complete", task_id=number),
                call("task_delete", task_id=number),
                call("undo_change", change=chance.randrange(1, 20)),
                ask("prompts/list"),
                ask("prompts/get", name=name, arguments={"x": "1"}),
                ask("resources/list"),
                ask("resources/read", uri=f"memo://{name}"),
                call("list_prompts"),
                call("list_tags"),
                call("search_prompts", query=f"Content {self._count - 3}"),
                call("search", query=name),
                call("task_list", limit=20),
                call("task_stats"),
                call("task_get", task_id=number),
                call("list_changes", limit=5),
            ]
        )


def test_a_read_sees_the_writes_sent_before_it(connections: tuple[Connection, Connection]) -> None:
    for connection in connections:
        for number in range(20):
            _, prompts, _, found = connection.pipeline(
                [
                    call("create_prompt", name=f"p{number}", content="Words"),
                    ask("prompts/list"),
                    call("delete_prompt", name=f"p{number}"),
                    call("search_prompts", query="Words"),
                ]
            )
            assert [prompt["name"] for prompt in prompts["result"]["prompts"]] == [f"p{number}"]
            assert found["result"]["structuredContent"]["total"] == 0


def test_pipelined_requests_get_the_same_responses_as_sequential_ones(
    connections: tuple[Connection, Connection],
) -> None:
    one_by_one, pipelined = connections
    requests = RandomRequests(SEED)
    for number in range(SEQUENCES):
        sequence = requests.sequence()
        expected = [one_by_one.pipeline([request])[0] for request in sequence]
        assert normalise(pipelined.pipeline(sequence)) == normalise(expected), f"sequence {number}"


def test_more_requests_than_may_run_at_once_are_all_answered_in_order(
    connections: tuple[Connection, Connection],
) -> None:
    requests = [call("task_create", title=f"Task {number}") for number in range(1500)]
    *created, stats = connections[0].pipeline([*requests, call("task_stats")])
    titles = [response["result"]["structuredContent"]["title"] for response in created]
    assert titles == [f"Task {number}" for number in range(1500)]
    assert stats["result"]["structuredContent"]["total"] == 1500


def test_requests_that_wait_for_each_other_are_answered_after_the_end_of_the_input(tmp_path: Path) -> None:
    calls = [
        ("add_prompt", {"title": f"Prompt {number}", "content": "needle"})
        if number % 2
        else ("search", {"query": "needle"})
        for number in range(20)
    ]
    with StdioServerProcess("dittybag", "serve", "--db", str(tmp_path / "dittybag.db")) as wire:
        wire.handshake()
        wire.send(
            *(
                msgspec.json.encode(
                    {
                        "jsonrpc": "2.0",
                        "id": number,
                        "method": "tools/call",
                        "params": {"name": name, "arguments": arguments},
                    }
                )
                for number, (name, arguments) in enumerate(calls)
            )
        )
        wire.hang_up()
        lines, _, status = wire.rest()
    responses = {message["id"]: message for line in lines if "id" in (message := msgspec.json.decode(line))}
    assert sorted(responses) == list(range(len(calls)))
    assert all(not response["result"]["isError"] for response in responses.values()), responses
    assert status == 0
