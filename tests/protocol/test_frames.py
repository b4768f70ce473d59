"""Frames: each request with a readable id gets exactly one response, and other messages get none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dittybag.protocol.eras.versions import (
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    VERSIONS,
)
from dittybag.protocol.jsonrpc import find_request_id
from tests.protocol.engine_servers import full_server
from tests.protocol.memory_client import MemoryClient


async def responses_to(frame: bytes, version: str = V2025_11_25) -> list[Any]:
    """Send one frame in a session of `version` and return all messages from the server."""
    async with MemoryClient(full_server(), version) as client:
        client.send(frame)
        _, future = client.start("ping" if version != "2026-07-28" else "tools/list")
        await future
        return [client.inbox.get_nowait() for _ in range(client.inbox.qsize())]


async def error_response_to(frame: bytes, version: str = V2025_11_25) -> Any:
    """Send one frame and return the only response to it."""
    (response,) = await responses_to(frame, version)
    assert response["jsonrpc"] == "2.0"
    return response


def ping(params: bytes = b"{}", id: bytes = b"5") -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"method":"ping","params":%b}' % (id, params)


#: Frames by the code of the error that answers each, and the id in it.
INVALID: dict[tuple[int, int | None], list[bytes]] = {
    (-32700, None): [
        b"{",
        b"nonsense",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping",}',
        b"\xff\xfe",
        b"\x00",
        b"{'a': 1}",
    ],
    (-32700, 5): [
        ping(b'{"x":NaN}'),
        ping(b'{"x":1e999}'),
        ping(b'{"x":' + b"9" * 5000 + b"}"),
        ping(b'{"x":"\xff"}'),
        ping(b'{"x":"\x01"}'),
    ],
    (-32600, 5): [
        ping(b'{"x":1,"x":2}'),
        ping(b'{"x":"a:b","y":[{"z":1,"z":2}]}'),
        ping(b'{"a":' * 3000 + b"1" + b"}" * 3000),
        b'{"method":"ping","params":' + b"[" * 3000 + b"]" * 3000 + b',"jsonrpc":"2.0","id":5}',
        b'{"jsonrpc":"1.0","id":5,"method":"ping"}',
        b'{"id":5,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":5,"method":7}',
        b'{"jsonrpc":"2.0","id":5,"method":null}',
        b'{"jsonrpc":"2.0","id":5}',
    ],
    (-32602, 5): [ping(b"[]"), ping(b'"x"'), ping(b'{"_meta":[]}'), ping(b'{"x":"\\ud800"}')],
    (-32601, 5): [
        b'{"jsonrpc":"2.0","id":5,"method":"\\ud800"}',
        b'{"jsonrpc":"2.0","id":5,"method":"' + b"x" * 100_000 + b'"}',
    ],
    # Ids that cannot be returned.
    (-32600, None): [
        *(ping(id=each) for each in (b"1.0", b"1.5", b"true", b"null", b"[]", b"{}")),
        *(ping(id=each) for each in (b'"\\ud800"', b'"' + b"i" * 2000 + b'"')),
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
    ],
}


@pytest.mark.parametrize(
    ("frame", "expected"),
    [(frame, expected) for expected, frames in INVALID.items() for frame in frames],
    ids=lambda value: str(value)[:60],
)
async def test_an_invalid_frame_gets_one_error_with_the_id_that_can_be_read(
    frame: bytes, expected: tuple[int, int | None]
) -> None:
    response = await error_response_to(frame)
    assert (response["error"]["code"], response.get("id")) == expected
    assert len(response["error"]["message"]) < 3000


@pytest.mark.parametrize(("depth", "code"), [(198, None), (200, -32600), (20_000, -32600)])
@pytest.mark.parametrize(
    ("opening", "closing", "levels"), [(b"[", b"]", 1), (b'{"a":', b"}", 1), (b'[[],{"b":', b"}]", 2)]
)
async def test_the_nesting_of_objects_and_arrays_is_limited(
    depth: int, code: int | None, opening: bytes, closing: bytes, levels: int
) -> None:
    # The message and its params add two levels.
    nested = opening * (depth // levels) + b"1" + closing * (depth // levels)
    (response,) = await responses_to(b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":%b}}' % nested)
    assert (response["id"], response.get("error", {}).get("code")) == (5, code)


@pytest.mark.parametrize("request_id", [0, -1, 2**53, 10**30, "", "7", "ü", "a b", "\u2028"])
async def test_a_valid_id_is_returned_unchanged(request_id: str | int) -> None:
    (response,) = await responses_to(
        msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": "ping"})
    )
    assert response == {"jsonrpc": "2.0", "id": request_id, "result": {}}


@pytest.mark.parametrize(
    ("version", "has_null_id"),
    [(V2024_11_05, True), (V2025_03_26, True), (V2025_06_18, True), (V2025_11_25, False)],
)
async def test_without_a_readable_id_the_error_has_a_null_id_only_where_the_revision_requires_it(
    version: str, *, has_null_id: bool
) -> None:
    assert ("id" in await error_response_to(b"{", version)) == has_null_id


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","method":"notifications/unknown","params":[]}',
        b'{"method":"notifications/cancelled"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":true}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}',
        b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"exit"}}',
        b'{"jsonrpc":"2.0","method":7}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"?"}}',
        b'{"jsonrpc":"2.0","id":[],"result":null}',
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
async def test_notifications_and_unexpected_responses_are_never_answered(frame: bytes, version: str) -> None:
    assert await responses_to(frame, version) == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_request_without_an_envelope_is_told_what_is_missing(version: str) -> None:
    (response,) = await responses_to(b'{"method":"initialize","params":{}}', version)
    assert response.get("id") is None
    assert response["error"]["code"] == -32600
    assert response["error"]["message"] == (
        'Invalid Request: add `"jsonrpc": "2.0"` and an `id` to this message'
    )


async def test_a_byte_order_mark_and_a_carriage_return_are_ignored() -> None:
    (response,) = await responses_to(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}\r')
    assert response["result"] == {}


async def test_colons_inside_strings_are_not_mistaken_for_duplicate_keys() -> None:
    params = b'{"name":"echo","arguments":{"text":"a:b::{"}}'
    (response,) = await responses_to(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}' % params)
    assert response["result"]["content"][0]["text"] == "a:b::{"


async def test_params_may_be_absent_or_null() -> None:
    for frame in (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}',
    ):
        (response,) = await responses_to(frame)
        assert "tools" in response["result"]


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"id":1,', 7),
        (b'  { "id" : "a\\"b" , "params":[', 'a"b'),
        (b'["id",1],"id":3}', 3),
        (b'}},"jsonrpc":"2.0","id":"end"}  ', "end"),
        (b'}},"id":8,"jsonrpc":"2.0"}', 8),
        (b'{"params":{"a":1,"id":9}}', None),
        (b'{"params":{"a":"x,\\"id\\":9"}}', None),
        (b'{"params":"x', None),
        (b'{"id":1.5,"params":{', None),
        (b"", None),
    ],
)
def test_the_id_of_an_oversize_frame_is_read_from_its_ends(frame: bytes, expected: str | int | None) -> None:
    assert find_request_id(frame) == expected


# Batches


@pytest.mark.parametrize("version", [version for version in VERSIONS if version != V2025_03_26])
async def test_a_batch_gets_one_error_in_revisions_without_batches(version: str) -> None:
    response = await error_response_to(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', version)
    assert response["error"]["code"] == -32600


async def test_a_batch_is_answered_with_a_batch() -> None:
    frame = (
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},'
        b'{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}},'
        b'7,{"jsonrpc":"2.0","id":3,"method":"nope"},{"jsonrpc":"2.0","id":9,"result":{}},'
        b'{"jsonrpc":"2.0","id":4,"method":"initialize","params":{}}]'
    )
    (responses,) = await responses_to(frame, V2025_03_26)
    by_id = {response["id"]: response for response in responses}
    assert by_id.keys() == {1, "b", None, 3, 4}
    assert by_id[1]["result"] == {}
    assert by_id["b"]["result"]["content"][0]["text"] == "x"
    assert [by_id[key]["error"]["code"] for key in (None, 3, 4)] == [-32600, -32601, -32600]


async def test_a_stateless_request_in_a_batch_is_refused() -> None:
    meta = (
        b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{}}'
    )
    frame = b'[{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":%b}}]' % meta
    ((response,),) = await responses_to(frame, V2025_03_26)
    assert (response["id"], response["error"]["code"]) == (1, -32600)


async def test_a_batch_of_notifications_is_not_answered() -> None:
    assert await responses_to(b'[{"jsonrpc":"2.0","method":"notifications/initialized"}]', V2025_03_26) == []


@pytest.mark.parametrize("frame", [b"[]", b"[" + b",".join([b"1"] * 1001) + b"]"])
async def test_an_empty_or_oversize_batch_gets_one_error(frame: bytes) -> None:
    assert (await error_response_to(frame, V2025_03_26))["error"]["code"] == -32600


async def test_a_cancelled_request_does_not_delay_the_rest_of_its_batch() -> None:
    async with MemoryClient(full_server(), V2025_03_26) as client:
        client.send(
            b'[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}},'
            b'{"jsonrpc":"2.0","id":2,"method":"ping"}]'
        )
        client.notify("notifications/cancelled", {"requestId": 1})
        responses: Any = await client.next()
    assert responses == [{"jsonrpc": "2.0", "id": 2, "result": {}}]
