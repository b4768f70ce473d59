"""Fetches one small document from an HTTP server or a file, with size and redirect limits."""

from __future__ import annotations

from asyncio import StreamReader, open_connection, to_thread
from typing import Final
from urllib.parse import SplitResult, urljoin

import httptools

from dittybag import files
from dittybag.identity.identity_errors import FetchFailed
from dittybag.identity.url_rules import origin, split_url

#: Maximum size of an HTTP response with its headers, or of a file.
MAX_BYTES: Final = 1024 * 1024
MAX_REDIRECTS: Final = 3

_REDIRECTS: Final = (301, 302, 303, 307, 308)
_CHUNK: Final = 64 * 1024


def describe_error(error: Exception) -> str:
    """Return why a fetch failed. The text of unknown errors is left out: it may quote a URL with a secret."""
    text = str(error) if isinstance(error, FetchFailed | OSError) else ""
    return text or type(error).__name__


async def get(url: str) -> bytes:
    """Return the document at a URL. Raises `FetchFailed`, and `OSError` if the connection fails.

    There is no timeout: the caller must set one. Redirects are followed on the same server only, because only
    that server is trusted.
    """
    for _ in range(MAX_REDIRECTS + 1):
        parts = _parse_url(url)
        response = await _request(parts)
        if response.status == 200:
            return bytes(response.body)
        if response.status not in _REDIRECTS:
            raise FetchFailed(f"the server responded with status {response.status}")
        url = urljoin(url, response.location)
        if origin(_parse_url(url)) != origin(parts):
            raise FetchFailed("the server redirects to another server")
    raise FetchFailed(f"more than {MAX_REDIRECTS} redirects")


async def read(path: str) -> bytes:
    """Return the content of a file. Raises `FetchFailed` and `OSError`."""
    try:
        return await to_thread(files.read, path, MAX_BYTES, follow_links=True)
    except files.NotRegularFile:
        raise FetchFailed("not a regular file") from None
    except files.FileTooLarge:
        raise FetchFailed(f"the file is larger than {MAX_BYTES // 1024} KiB") from None


class _HttpResponse:
    """An HTTP response that is being received. The parser calls the `on_` methods."""

    def __init__(self) -> None:
        self.status = 0
        self.location = ""
        self.body = bytearray()
        self.is_complete = False
        #: No length and no chunks: the end of the connection ends the body.
        self.ends_with_connection = False
        self._has_length = False
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """Parse the next bytes. Raises `FetchFailed`."""
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            # Bytes after the response do not matter.
            if not self.is_complete:
                raise FetchFailed("the response is not valid HTTP") from None

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
        # A 1xx status announces that the response follows.
        if self.status >= 200:
            self.is_complete = True


async def _request(parts: SplitResult) -> _HttpResponse:
    context = None
    if parts.scheme == "https":
        import ssl

        # In a thread: it reads all certificates of the system.
        context = await to_thread(ssl.create_default_context)
    _, host, port = origin(parts)
    reader, writer = await open_connection(host, port, ssl=context)
    try:
        writer.write(_encode_request(parts))
        return await _read_response(reader)
    finally:
        # Close without waiting for the server.
        writer.transport.abort()


def _encode_request(parts: SplitResult) -> bytes:
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


async def _read_response(reader: StreamReader) -> _HttpResponse:
    response = _HttpResponse()
    read = 0
    while not response.is_complete:
        data = await reader.read(_CHUNK)
        read += len(data)
        if read > MAX_BYTES:
            raise FetchFailed(f"the response is larger than {MAX_BYTES // 1024} KiB")
        if not data:
            if response.ends_with_connection:
                break
            raise FetchFailed("the response is incomplete")
        response.feed(data)
    return response


def _parse_url(url: str) -> SplitResult:
    try:
        return split_url(url)
    except ValueError as error:
        raise FetchFailed(str(error)) from None
