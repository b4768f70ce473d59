"""A local OAuth issuer: an HTTP server whose keys a test can change."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import Counter
from types import TracebackType
from typing import Any, Self

from dittybag.identity.oauth_settings import OAuthSettings
from dittybag.identity.token_verifier import OAuthVerifier
from tests.identity.jwt_builder import AUDIENCE, ISSUER, NOW, Key


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


class Issuer:
    """Serves documents. The responses are set by path, and the requests are counted by path."""

    def __init__(self, *keys: Key, tls: ssl.SSLContext | None = None) -> None:
        self.keys = list(keys)
        #: Complete responses by path, in place of the default ones.
        self.responses: dict[str, bytes] = {}
        self.requests: Counter[str] = Counter()
        self.heads: list[bytes] = []
        self.port = 0
        #: Set while it responds. If cleared, it accepts requests and does not respond.
        self.is_responding = asyncio.Event()
        self.is_responding.set()
        #: Set by the first request.
        self.was_requested = asyncio.Event()
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()

    @property
    def base(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def fetches(self) -> int:
        """The number of requests for the keys."""
        return self.requests["/keys"]

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

    def verifier(self, clock: Clock | None = None, **changes: Any) -> OAuthVerifier:
        """Return a verifier that fetches its keys from this issuer."""
        settings = {"issuer": ISSUER, "audience": AUDIENCE, "jwks": f"{self.base}/keys", **changes}
        return OAuthVerifier(OAuthSettings(**settings), now=clock or Clock())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ")[1].decode()
            self.heads.append(head)
            self.requests[path] += 1
            self.was_requested.set()
            await self.is_responding.wait()
            writer.write(self._response(path))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()

    def _response(self, path: str) -> bytes:
        if path in self.responses:
            return self.responses[path]
        if path == "/keys":
            return http_response({"keys": [key.jwk for key in self.keys]})
        return http_response({"error": "not found"}, "404 Not Found")


def http_response(content: dict[str, Any] | bytes, status: str = "200 OK", *headers: str) -> bytes:
    """Return an HTTP response with a content length."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body
