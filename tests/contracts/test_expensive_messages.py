"""Messages that are expensive to process do not delay other clients."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import msgspec
import pytest

from tests.contracts.http_server_process import HttpServerProcess
from tests.contracts.library_fixtures import ENVELOPE
from tests.contracts.test_concurrent_requests import http_request
from tests.http.raw_connection import RawConnection, post_request

#: How long another client may wait, on a machine that runs nothing else. Tests run on busy machines.
MAX_SECONDS = float(os.environ.get("LATENCY_SECONDS", "1.0"))
SIZE = 12 * 1024 * 1024 - 1000

HEAD = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add_prompt","arguments":'


def arguments(value: bytes) -> bytes:
    """Return a call with these arguments."""
    return HEAD + value + b"}}"


def filled(begin: bytes, item: bytes, end: bytes) -> bytes:
    """Return a call with as many items as fit into a message."""
    return arguments(begin + item * ((SIZE - len(HEAD)) // len(item)) + end)


#: Valid and invalid messages of the maximum size, and smaller ones that just stay within other limits.
#: They are built when they are needed: together they take 300 MB.
MESSAGES: dict[str, Callable[[], bytes]] = {
    "small": lambda: arguments(b'{"title":"x"}'),
    "one long number": lambda: filled(b'{"tags":[', b"9", b"]}"),
    "long numbers": lambda: filled(b'{"tags":[', b"9" * 4000 + b",", b"1]}"),
    "numbers with exponents": lambda: filled(b'{"tags":[', b"1e308,", b"1]}"),
    "as many exponents as allowed": lambda: arguments(b'{"tags":[' + b"1e308," * 1990 + b"1]}"),
    "short message of exponents": lambda: arguments(b'{"tags":[' + b"1e308," * 2600 + b"1]}"),
    "small integers": lambda: filled(b'{"tags":[', b"1,", b"1]}"),
    "as many values as allowed": lambda: arguments(b'{"tags":[' + b'"a",' * 9900 + b'"a"]}'),
    "as many long numbers as allowed": lambda: arguments(b'{"tags":[' + (b"9" * 499 + b",") * 1990 + b"1]}"),
    "more long numbers than allowed": lambda: arguments(b'{"tags":[' + (b"9" * 499 + b",") * 19000 + b"1]}"),
    "empty arrays": lambda: filled(b'{"tags":[', b"[],", b"[]]}"),
    "empty objects": lambda: filled(b'{"tags":[', b"{},", b"{}]}"),
    "empty strings": lambda: filled(b'{"tags":[', b'"",', b'""]}'),
    "deep arrays": lambda: filled(b'{"tags":', b"[", b"}"),
    "deep objects": lambda: filled(b"", b'{"a":', b"1"),
    "members": lambda: filled(b"{", b'"k":1,', b'"z":1}'),
    "a late duplicate key": lambda: filled(b'{"a":1,"b":"', b"x", b'","a":2}'),
    "duplicate keys": lambda: arguments(b"{" + b'"a":1,' * 4900 + b'"a":1}'),
    "text": lambda: filled(b'{"title":"t","content":"', b"x", b'"}'),
    "text in two bytes": lambda: filled(b'{"title":"t","content":"', "é".encode(), b'"}'),
    "escaped text": lambda: filled(b'{"title":"t","content":"', b"\\u0001", b'"}'),
    "escaped quotes": lambda: filled(b'{"title":"t","content":"', b'\\"', b'"}'),
    "escaped backslashes": lambda: filled(b'{"title":"t","content":"', b"\\\\", b'"}'),
    "lone surrogates": lambda: filled(b'{"title":"t","content":"', b"\\ud800", b'"}'),
    "bytes that are not text": lambda: filled(b'{"title":"t","content":"', b"\xff", b'"}'),
    "control characters": lambda: filled(b'{"title":"t","content":"', b"\x01", b'"}'),
    "blanks": lambda: filled(b"{", b" ", b"}"),
    "a long key": lambda: filled(b'{"', b"k", b'":1}'),
    "a wrong type": lambda: filled(b'{"title":["', b"x", b'"]}'),
    "too large": lambda: arguments(b'"' + b"x" * (2 * SIZE) + b'"'),
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServerProcess]:
    folder: Path = tmp_path_factory.mktemp("expensive")
    with HttpServerProcess("--db", str(folder / "dittybag.db")) as host:
        yield host


class Probe:
    """A client that sends small requests one after the other, and measures the slowest."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.slowest = 0.0
        self.count = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        listing = {"jsonrpc": "2.0", "id": 1, "method": "prompts/list", "params": {"_meta": ENVELOPE}}
        request = http_request(msgspec.json.encode(listing))
        with RawConnection(self._port, seconds=60) as connection:
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while not self._stop.is_set():
                started = time.perf_counter()
                connection.send(request)
                assert connection.read_response() is not None
                self.slowest = max(self.slowest, time.perf_counter() - started)
                self.count += 1


@pytest.mark.parametrize("kind", MESSAGES)
def test_an_expensive_message_does_not_delay_other_clients(host: HttpServerProcess, kind: str) -> None:
    port = host.address[1]
    request = post_request(MESSAGES[kind]())
    with Probe(port) as probe, RawConnection(port, seconds=60) as connection:
        for _ in range(3):
            if not connection.try_send(request):
                break
            response = connection.read_response()
            if response is None or response[0] == 413:
                break
    assert probe.count > 0
    print(f"{kind}: {1000 * probe.slowest:.0f} ms, slowest of {probe.count}")
    assert probe.slowest < MAX_SECONDS, f"{probe.slowest:.3f} s"
