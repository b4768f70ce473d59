"""An issuer on this machine: a real server with keys that come and go."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import Counter
from types import TracebackType
from typing import Any, Self

from dittybag.identity import OAuthSettings, OAuthVerifier
from tests.identity.tokens import AUDIENCE, ISSUER, NOW, Key


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


class Issuer:
    """A server of documents. What it answers is set by path; it counts who asks for what."""

    def __init__(self, *keys: Key, tls: ssl.SSLContext | None = None) -> None:
        self.keys = list(keys)
        #: Whole answers, for what is not the keys.
        self.answers: dict[str, bytes] = {}
        self.asked: Counter[str] = Counter()
        self.heads: list[bytes] = []
        self.port = 0
        #: Set while it answers; else it takes requests and says nothing.
        self.is_awake = asyncio.Event()
        self.is_awake.set()
        #: Set as soon as somebody asks.
        self.was_asked = asyncio.Event()
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()

    @property
    def base(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def fetches(self) -> int:
        """How often the keys were asked for."""
        return self.asked["/keys"]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._connections:
            writer.transport.abort()
        await self._server.wait_closed()

    def verifier(self, clock: Clock | None = None, **others: Any) -> OAuthVerifier:
        """A verifier that gets its keys here."""
        settings = {"issuer": ISSUER, "audience": AUDIENCE, "jwks": f"{self.base}/keys", **others}
        return OAuthVerifier(OAuthSettings(**settings), now=clock or Clock())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ")[1].decode()
            self.heads.append(head)
            self.asked[path] += 1
            self.was_asked.set()
            await self.is_awake.wait()
            writer.write(self._answer(path))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()

    def _answer(self, path: str) -> bytes:
        if path in self.answers:
            return self.answers[path]
        if path == "/keys":
            return answer({"keys": [key.jwk for key in self.keys]})
        return answer({"error": "not found"}, "404 Not Found")


def answer(content: dict[str, Any] | bytes, status: str = "200 OK", *headers: str) -> bytes:
    """An HTTP answer with a length."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body
