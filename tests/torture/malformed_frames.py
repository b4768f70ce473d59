"""A seeded generator of malformed JSON-RPC frames, each on one line."""

from __future__ import annotations

import json
import math
import random
from typing import Any

METHODS = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "skills/list",
    "skills/get",
    "resources/directory/read",
    "resources/subscribe",
    "completion/complete",
    "logging/setLevel",
    "server/discover",
    "subscriptions/listen",
    "notifications/cancelled",
    "no/such",
]

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}

ODD_TEXT = [
    "",
    "\x00",
    "\u2028\u2029",
    "\ud800",
    "\U0001f92f" * 50,
    "\u202eabc",
    "x" * 5000,
    "../../etc/passwd",
    "{{7*7}}",
    "' OR 1=1 --",
    "\r\n",
    "\ufeff",
]

ODD_VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1.0,
    1.5,
    2**63,
    -(2**64),
    10**400,
    math.nan,
    math.inf,
    [],
    {},
    [[]],
    {"": {}},
    *ODD_TEXT,
]


class MalformedFrames:
    """An endless sequence of frames, determined by the seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0

    def next(self) -> bytes:
        self._count += 1
        chosen = self._random.choice(
            (
                *[self._invalid_members] * 3,
                self._cut,
                self._flipped,
                self._spliced,
                self._deep,
                self._repeated_key,
                self._batch,
                self._not_a_message,
                self._odd_bytes,
                self._bare,
            )
        )
        return chosen().replace(b"\n", b" ")

    def _id(self) -> Any:
        return self._random.choice([self._count, f"id-{self._count}"])

    def _value(self, depth: int = 0) -> Any:
        kind = self._random.randrange(10)
        if kind < 6 or depth > 3:
            return self._random.choice(ODD_VALUES)
        if kind < 8:
            return [self._value(depth + 1) for _ in range(self._random.randrange(4))]
        return {
            self._random.choice(["a", "name", "uri", *ODD_TEXT[:4]]): self._value(depth + 1) for _ in range(3)
        }

    def _request(self) -> dict[str, Any]:
        params: dict[str, Any] = {}
        for name in (
            "name",
            "uri",
            "arguments",
            "cursor",
            "level",
            "ref",
            "argument",
            "notifications",
            "requestState",
        ):
            if self._random.random() < 0.3:
                params[name] = self._value()
        if self._random.random() < 0.5:
            params["name"] = self._random.choice(["echo", "order", "greet", "add", "crash"])
        if self._random.random() < 0.3:
            params["_meta"] = {
                **ENVELOPE,
                **({"progressToken": self._value()} if self._random.random() < 0.3 else {}),
            }
        return {"jsonrpc": "2.0", "id": self._id(), "method": self._random.choice(METHODS), "params": params}

    def _encoded(self, value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=self._random.random() < 0.7).encode("utf-8", "surrogatepass")

    def _invalid_members(self) -> bytes:
        request = self._request()
        for name in list(request):
            if self._random.random() < 0.2:
                request[name] = self._value()
            elif self._random.random() < 0.1:
                del request[name]
        return self._encoded(request)

    def _bare(self) -> bytes:
        return self._encoded(self._request())

    def _cut(self) -> bytes:
        frame = self._bare()
        return frame[: self._random.randrange(len(frame))]

    def _flipped(self) -> bytes:
        frame = bytearray(self._bare())
        for _ in range(self._random.randrange(1, 6)):
            frame[self._random.randrange(len(frame))] = self._random.randrange(256)
        return bytes(frame)

    def _spliced(self) -> bytes:
        frame = self._bare()
        at = self._random.randrange(len(frame))
        return (
            frame[:at]
            + self._random.choice([b"\xff", b"\x00", b"\xed\xa0\x80", b"NaN", b"}", b"{", b'"'])
            + frame[at:]
        )

    def _deep(self) -> bytes:
        depth = self._random.choice([10, 500, 990, 1100, 5000, 100_000])
        inside = self._random.choice([(b"[", b"]"), (b'{"a":', b"}")])
        nested = inside[0] * depth + b"1" + inside[1] * depth
        return b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":{"x":%b}}' % (
            self._encoded(self._id()),
            nested,
        )

    def _repeated_key(self) -> bytes:
        key = self._random.choice([b"jsonrpc", b"id", b"method", b"params", b"x"])
        return self._encoded(self._request())[:-1] + b',"%b":1,"%b":2}' % (key, key)

    def _batch(self) -> bytes:
        return self._encoded([self._request() for _ in range(self._random.randrange(5))])

    def _not_a_message(self) -> bytes:
        return self._encoded(self._value())

    def _odd_bytes(self) -> bytes:
        return self._random.choice(
            [
                b"\xef\xbb\xbf" + self._bare(),
                self._bare() + b"\r",
                b" \t" + self._bare(),
                self._bare().replace(b",", b" ,\t"),
                self._bare() * 2,
                self._random.randbytes(self._random.randrange(1, 200)),
                b"\xff\xfe" + self._bare().decode("utf-8", "replace").encode("utf-16-le"),
                b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"n":%b}}' % (self._count, b"9" * 6000),
                b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"n":1e%b}}' % (self._count, b"9" * 10),
            ]
        )


def readable_id(frame: bytes) -> Any:
    """Return the id of a frame that needs a response; `None` if it has no readable id.

    The parser is lenient: it accepts a byte order mark, invalid UTF-8, control characters, NaN and numbers of
    any size.
    """
    text = frame.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    try:
        message = json.loads(text, strict=False, parse_int=_parse_int, object_pairs_hook=_single_id)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    found = message.get("id")
    is_request = "method" in message or not ("result" in message or "error" in message)
    usable = type(found) is int or (type(found) is str and len(found) <= 1024 and found.isprintable())
    return found if is_request and usable else None


def _parse_int(digits: str) -> int | None:
    return int(digits) if len(digits) <= 1000 else None


def _single_id(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    return {name: value for name, value in pairs if name != "id" or names.count("id") == 1}
