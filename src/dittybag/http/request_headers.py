"""Checks that the routing headers of a stateless request match its body, because proxies rely on them."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final

from msgspec import UNSET, UnsetType

from dittybag.http.asgi_messages import Headers
from dittybag.protocol.jsonrpc import encode
from dittybag.protocol.request_meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from dittybag.protocol.server import Server
from dittybag.protocol.types import JsonObject
from dittybag.protocol.wire_errors import HeaderMismatch, InvalidParams

VERSION: Final = b"mcp-protocol-version"
METHOD: Final = b"mcp-method"
NAME: Final = b"mcp-name"

#: The member of `params` that the `Mcp-Name` header must repeat, by method.
_NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_BASE64: Final = re.compile(r"=\?base64\?(.*)\?=")


def check(message: JsonObject, headers: Headers, server: Server) -> None:
    """Raises `InvalidParams` or `HeaderMismatch` if fields are missing or headers and body differ."""
    params = message.get("params")
    meta = params.get("_meta") if type(params) is dict else None
    if headers.has_duplicates:
        _check_conflicts(headers)
    if type(meta) is not dict or type(meta.get(PROTOCOL_VERSION)) is not str:
        raise InvalidParams(f"Invalid params: `_meta` must have `{PROTOCOL_VERSION}`, a string")
    if type(meta.get(CLIENT_CAPABILITIES)) is not dict:
        raise InvalidParams(f"Invalid params: `{CLIENT_CAPABILITIES}` is required and must be an object")
    _require(headers, VERSION, meta[PROTOCOL_VERSION], "the version in `_meta`")
    _require(headers, METHOD, message.get("method"), "the method")
    member = _NAMED.get(str(message.get("method")))
    if member is not None and type(params) is dict and type(params.get(member)) is str:
        _require(headers, NAME, params[member], f"`params.{member}`")
        if message["method"] == "tools/call":
            _check_mirrored(params, headers, server)


def _check_mirrored(params: JsonObject, headers: Headers, server: Server) -> None:
    """Check the headers that must repeat tool arguments, as the tool's schema requires."""
    tool, arguments = server.tools.get(params["name"]), params.get("arguments")
    if tool is None or type(arguments) is not dict:
        return
    for name, header in server.header_arguments(tool).items():
        value = arguments.get(name)
        if isinstance(value, str | int):
            text = value if isinstance(value, str) else encode(value).decode()
            encoded = header.encode("latin-1", "replace")
            _require(headers, encoded, text, f"the argument `{name}`")


def _check_conflicts(headers: Headers) -> None:
    for name in (VERSION, METHOD, NAME):
        if len(set(headers.get_all(name))) > 1:
            problem = f"The header {name.decode()} occurs several times with different values"
            raise HeaderMismatch(problem)


def _require(headers: Headers, name: bytes, expected: Any, what: str) -> None:
    is_plain = type(expected) is str and expected.isascii() and not expected.startswith("=?")
    if is_plain and headers.get_bytes(name) == expected.encode():
        return
    value = _decode_value(headers.get(name))
    if value is None:
        raise HeaderMismatch(f"The header {name.decode()} is missing; it must repeat {what}")
    if value != expected:
        raise HeaderMismatch(f"The header {name.decode()} does not match {what}")


def _decode_value(value: str | None) -> str | UnsetType | None:
    """Return a header value, Base64-decoded if marked so. `UNSET` if it cannot be decoded."""
    if value is None:
        return None
    if not value.isascii():
        return UNSET
    found = _BASE64.fullmatch(value) if value.startswith("=?") else None
    if found is None:
        return value
    try:
        return base64.b64decode(found[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return UNSET
