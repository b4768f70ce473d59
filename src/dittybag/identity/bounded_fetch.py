"""One small document from a server or from a file, with limits."""

from __future__ import annotations

import os
import stat
from asyncio import StreamReader, open_connection, to_thread
from typing import Final
from urllib.parse import SplitResult, urljoin

import httptools

from dittybag.identity.identity_errors import FetchFailed
from dittybag.identity.url_rules import origin, split_url

#: Of an answer with its head, or of a file.
MOST_BYTES: Final = 1024 * 1024
MOST_REDIRECTS: Final = 3

_REDIRECTS: Final = (301, 302, 303, 307, 308)
_CHUNK: Final = 64 * 1024


def reason(error: Exception) -> str:
    """Why there is no document. What others raise may quote an address with a secret in it."""
    said = str(error) if isinstance(error, FetchFailed | OSError) else ""
    return said or type(error).__name__


async def get(url: str) -> bytes:
    """The document at an address. Raises `FetchFailed`, and `OSError` if there is no connection.

    It takes as long as the server likes: the caller has to set a limit. Redirects are followed on the same
    server only, because the address was chosen for whom it belongs to.
    """
    for _ in range(MOST_REDIRECTS + 1):
        parts = _checked(url)
        answer = await _ask(parts)
        if answer.status == 200:
            return bytes(answer.body)
        if answer.status not in _REDIRECTS:
            raise FetchFailed(f"it answers with status {answer.status}")
        url = urljoin(url, answer.location)
        if origin(_checked(url)) != origin(parts):
            raise FetchFailed("it redirects to another server")
    raise FetchFailed("it redirects again and again")


async def read(path: str) -> bytes:
    """What is in a file. Raises `FetchFailed` and `OSError`."""
    return await to_thread(_read, path)


class _Answer:
    """An HTTP answer as it comes in; the methods are called by the parser."""

    def __init__(self) -> None:
        self.status = 0
        self.location = ""
        self.body = bytearray()
        self.is_complete = False
        #: Neither a length nor chunks: it ends when the connection does.
        self.ends_with_connection = False
        self._has_length = False
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """Take in the next bytes. Raises `FetchFailed`."""
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            # What comes after the answer does not matter.
            if not self.is_complete:
                raise FetchFailed("its answer is not HTTP") from None

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"location":
            self.location = value.decode("latin-1")
        self._has_length = self._has_length or name in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self.ends_with_connection = not self._has_length

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        # One that only says to wait is not the answer.
        if self.status >= 200:
            self.is_complete = True


async def _ask(parts: SplitResult) -> _Answer:
    context = None
    if parts.scheme == "https":
        import ssl

        # It reads all certificates of the system.
        context = await to_thread(ssl.create_default_context)
    _, host, port = origin(parts)
    reader, writer = await open_connection(host, port, ssl=context)
    try:
        writer.write(_request(parts))
        return await _answer(reader)
    finally:
        # Nothing is left to be said, and nobody should wait for a server's farewell.
        writer.transport.abort()


def _request(parts: SplitResult) -> bytes:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = (
        f"GET {target} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Accept: application/json",
        "Accept-Encoding: identity",
        "User-Agent: dittybag",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode()


async def _answer(reader: StreamReader) -> _Answer:
    answer = _Answer()
    read = 0
    while not answer.is_complete:
        data = await reader.read(_CHUNK)
        read += len(data)
        if read > MOST_BYTES:
            raise FetchFailed(f"its answer is larger than {MOST_BYTES // 1024} KiB")
        if not data:
            if answer.ends_with_connection:
                break
            raise FetchFailed("its answer breaks off")
        answer.feed(data)
    return answer


def _checked(url: str) -> SplitResult:
    try:
        return split_url(url)
    except ValueError as error:
        raise FetchFailed(str(error)) from None


def _read(path: str) -> bytes:
    # A pipe must not make this wait.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FetchFailed("it is not a file")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise FetchFailed(f"it is larger than {MOST_BYTES // 1024} KiB")
    return data
