"""A seeded generator of malformed HTTP requests, and of HTTP requests with malformed messages."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from tests.http.raw_connection import POST_HEAD, post_request
from tests.torture.malformed_frames import MalformedFrames, readable_id

PING = b'{"jsonrpc":"2.0","id":"inner","method":"ping"}'
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"

LENGTHS = [
    b"-1",
    b"+5",
    b"5 5",
    b"0x10",
    b"1e3",
    b"abc",
    b"",
    b"9" * 30,
    b"46, 46",
    b"46\r\nContent-Length: 7",
]
CODINGS = [
    b"gzip, chunked",
    b"chunked, chunked",
    b"xchunked",
    b"identity",
    b"chunked\t",
    b"chunked;q=1",
    b"chunked\r\nTransfer-Encoding: identity",
    b"\x0bchunked",
    b"gzip",
]
CHUNKS = [
    b"zz\r\nab\r\n0\r\n\r\n",
    b"-1\r\n\r\n",
    b"ffffffffffffffffff\r\nab",
    b"2\r\nabc\r\n0\r\n\r\n",
    b"2\nab\n0\n\n",
    b"2;" + b"x" * 5000 + b"\r\nab\r\n0\r\n\r\n",
    b"0\r\nTrailer: " + b"x" * 5000 + b"\r\n\r\n",
    b"0x2\r\nab\r\n0\r\n\r\n",
    b" 2\r\nab\r\n0\r\n\r\n",
    b"\r\n\r\n\r\n",
]
HEADERS = [
    b"X: " + b"x" * 200_000,
    b"\r\n".join(b"X-%d: y" % number for number in range(2000)),
    b"no colon",
    b"X : space",
    b": no name",
    b"X: a\r\n folded",
    b"X: a\x00b",
    b"X: a\x01b",
    b"X\x00: b",
    b"X: a\rb",
    b"X: a\nY: b",
    b"X: \xff\xfe",
    b"Host: evil.example",
    b"Content-Type: text/plain",
    b"Mcp-Session-Id: \xff",
    b"MCP-Protocol-Version: \x7f",
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==",
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQ",
    b"Expect: 100-continue",
    b"Expect: the unexpected",
    b"Connection: close, keep-alive",
    b"Accept: " + b"a/b," * 5000,
    b"Origin: \x00",
]
TARGETS = [
    b"/mcp\x00",
    b"/mcp%00",
    b"http://evil.example/mcp",
    b"http://localhost/mcp",
    b"//mcp",
    b"*",
    b"",
    b"/mcp?" + b"a=b&" * 5000,
    b"/../../etc/passwd",
    b"/mcp#x",
    b"/%zz%",
    b"/\xff\xfe",
    b"mcp",
    b"http://",
    b"http:///mcp",
    b"http://[::1/mcp",
    b"http://localhost:99999999/mcp",
    b"/mcp HTTP/1.1",
    b"/mcp\r\nX: y",
    b"/" + b"x" * 100_000,
    b"/%F0%9F%A4%AF",
    b"/%ff",
]
METHODS = [
    b"post",
    b"FOO",
    b"",
    b"P" * 5000,
    b"CONNECT",
    b"PRI",
    b"POST\x00",
    b" POST",
    b"GET",
    b"DELETE",
    b"HEAD",
]
PROTOCOLS = [b"HTTP/0.9", b"HTTP/2.0", b"HTTP/1.9", b"HTTP/1.1x", b"HTTP/1.0", b"HTTP", b"", b"HTTP/9" * 1000]


class MalformedRequest(Struct, frozen=True):
    """A malformed request."""

    raw: bytes
    #: Whether it is valid HTTP. Then it has exactly one response, and the connection can be reused.
    is_http: bool
    #: The message id that needs a response.
    id: Any = None


class MalformedRequests:
    """An endless sequence of requests, determined by the seed."""

    def __init__(self, seed: str, session: bytes) -> None:
        """`session`: the id of an open session."""
        self._random = random.Random(seed)
        self._frames = MalformedFrames(self._random.randrange(2**32))
        self._session = session

    def next(self) -> MalformedRequest:
        if self._random.random() < 0.6:
            return self._wrong_message()
        chosen: Callable[[], bytes] = self._random.choice(
            (
                self._wrong_length,
                self._wrong_coding,
                self._wrong_chunks,
                self._both_lengths,
                self._odd_header,
                self._odd_target,
                self._odd_line,
                self._cut,
                self._flipped,
                self._noise,
            )
        )
        return MalformedRequest(chosen(), is_http=False)

    def _wrong_message(self) -> MalformedRequest:
        body = self._frames.next()
        kind = self._random.randrange(4)
        more = b""
        if kind == 0:
            more = b"Mcp-Session-Id: %b\r\n" % self._session
        elif kind == 1:
            more = self._matching_headers(body)
        elif kind == 2:
            more = b"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n"
        return MalformedRequest(post_request(body, more), is_http=True, id=readable_id(body))

    def _matching_headers(self, body: bytes) -> bytes:
        """Return the routing headers for a message, without values that a header cannot hold."""
        try:
            message = json.loads(body)
            params = message["params"]
            lines = {"Mcp-Method": message["method"], "MCP-Protocol-Version": params["_meta"][VERSION_KEY]}
            lines["Mcp-Name"] = params.get("name", params.get("uri", ""))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return b""
        headers = [
            f"{name}: {value}\r\n"
            for name, value in lines.items()
            if isinstance(value, str) and value.isascii() and value.isprintable()
        ]
        return "".join(headers).encode()

    def _wrong_length(self) -> bytes:
        return POST_HEAD + b"Content-Length: " + self._random.choice(LENGTHS) + b"\r\n\r\n" + PING

    def _wrong_coding(self) -> bytes:
        coding = self._random.choice(CODINGS)
        return POST_HEAD + b"Transfer-Encoding: " + coding + b"\r\n\r\n2e\r\n" + PING + b"\r\n0\r\n\r\n"

    def _wrong_chunks(self) -> bytes:
        return POST_HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + self._random.choice(CHUNKS)

    def _both_lengths(self) -> bytes:
        lines = [
            b"Content-Length: %d\r\n" % self._random.choice([0, 4, 46]),
            b"Transfer-Encoding: chunked\r\n",
        ]
        self._random.shuffle(lines)
        return POST_HEAD + b"".join(lines) + b"\r\n0\r\n\r\n" + post_request(PING)

    def _odd_header(self) -> bytes:
        return post_request(PING, self._random.choice(HEADERS) + b"\r\n")

    def _odd_target(self) -> bytes:
        return post_request(PING).replace(b"/mcp", self._random.choice(TARGETS), 1)

    def _odd_line(self) -> bytes:
        line = b"%b /mcp %b\r\n" % (self._random.choice(METHODS), self._random.choice(PROTOCOLS))
        return line + post_request(PING).partition(b"\r\n")[2]

    def _cut(self) -> bytes:
        whole = post_request(PING)
        return whole[: self._random.randrange(len(whole))]

    def _flipped(self) -> bytes:
        whole = bytearray(post_request(PING))
        for _ in range(self._random.randrange(1, 6)):
            whole[self._random.randrange(len(whole))] = self._random.randrange(256)
        return bytes(whole)

    def _noise(self) -> bytes:
        noise = self._random.randbytes(self._random.randrange(1, 300))
        return self._random.choice([noise, b"\x16\x03\x01\x02\x00\x01\x00" + noise, b"\r\n" * 50 + noise])
