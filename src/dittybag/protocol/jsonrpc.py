"""Strict decoding and encoding of JSON-RPC 2.0 messages."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

from dittybag.protocol.frame_scan import SHORT_BYTES, scan
from dittybag.protocol.types import JsonObject, RequestId
from dittybag.protocol.wire_errors import InvalidRequest, ParseError, ProtocolError, WireError

encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode

#: Longer strings are not accepted as a request id.
MAX_ID_CHARACTERS: Final = 1024

#: Deeper nesting of objects and arrays is refused, because it could exhaust the stack.
MAX_DEPTH: Final = 200

#: Longer frames are decoded in a thread, if the transport can.
LONG_BYTES: Final = 256 * 1024
#: The slow decoder handles a long frame only if it has at most this many escapes.
_FEW_ESCAPES: Final = 20_000

#: Frames up to this length cannot exceed the maximum depth.
_SHORT: Final = 2 * MAX_DEPTH
_TOO_DEEP: Final = f"Invalid Request: nested more than {MAX_DEPTH} levels deep"
_BOM: Final = b"\xef\xbb\xbf"


class MalformedFrame(Exception):
    """A frame that cannot be processed. `request_id` is set if the id could be read."""

    def __init__(self, error: ProtocolError, request_id: RequestId | None = None) -> None:
        self.error = error
        self.request_id = request_id
        super().__init__(str(error))


class Decoded(Struct, frozen=True):
    """A decoded frame."""

    value: Any
    #: A string may contain a lone surrogate, which is valid in JSON but not in Unicode text.
    may_have_surrogates: bool = False
    #: The length of the frame in bytes, if it is long.
    size: int = 0


def decode(frame: bytes) -> Decoded:
    """Decode the JSON value in `frame`. Raises `MalformedFrame`."""
    if len(frame) > SHORT_BYTES:
        return _decode_scanned(frame)
    try:
        value = _decode(frame)
        if len(frame) > _SHORT:
            _check_depth(value, frame)
        # A cheap check for duplicate keys: a decoded value has only the last of them, so our own encoding of
        # it has fewer colons. Escapes may hide colons: frames with escapes are decoded again.
        encoded = encode(value)
        if encoded != frame and (b"\\" in frame or frame.count(b":") != encoded.count(b":")):
            _check_duplicates(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_slowly(frame)
    return Decoded(value)


def _decode_scanned(frame: bytes) -> Decoded:
    """Decode a frame that may be expensive to decode. Raises `MalformedFrame`."""
    try:
        keys = scan(frame)
    except InvalidRequest as error:
        raise MalformedFrame(error, find_request_id(frame)) from None
    if len(frame) > LONG_BYTES:
        return _decode_long(frame, keys)
    try:
        value = _decode(frame)
        _check_depth(value, frame)
        if keys != _count_keys(value):
            _check_duplicates(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_slowly(frame)
    return Decoded(value, size=len(frame))


def _decode_long(frame: bytes, keys: int) -> Decoded:
    """Decode a long frame. Raises `MalformedFrame`.

    The slow decoder takes 100 nanoseconds for each escape, during which all threads stop.
    """
    size, frame = len(frame), frame.removeprefix(_BOM)
    try:
        value = _decode(frame)
        _check_depth(value, frame)
    except RecursionError:
        raise MalformedFrame(InvalidRequest(_TOO_DEEP), find_request_id(frame)) from None
    except UnicodeDecodeError:
        raise MalformedFrame(ParseError("Parse error: not UTF-8"), find_request_id(frame)) from None
    except msgspec.DecodeError as problem:
        if frame.count(b"\\") <= _FEW_ESCAPES:
            # It may have a lone surrogate, which the tool reports with the other problems.
            return _decode_slowly(frame)
        raise MalformedFrame(ParseError(f"Parse error: {problem}"), find_request_id(frame)) from None
    if keys != _count_keys(value):
        raise MalformedFrame(InvalidRequest("Invalid Request: a key occurs twice"), _agreed_id(value, frame))
    return Decoded(value, size=size)


def _agreed_id(value: Any, frame: bytes) -> RequestId | None:
    """Return the id of a long message with duplicate keys, or `None` if the id itself may be duplicated."""
    request_id = request_id_of(value)
    return request_id if find_request_id(frame) == request_id else None


def request_id_of(value: Any) -> RequestId | None:
    """Return the id of a message, or `None` if it is not valid. `1.0` and `true` are not valid ids."""
    candidate = value.get("id") if type(value) is dict else None
    if type(candidate) is int or (type(candidate) is str and len(candidate) <= MAX_ID_CHARACTERS):
        return None if type(candidate) is str and has_surrogate(candidate) else candidate
    return None


def has_surrogate(text: str) -> bool:
    """Return whether `text` contains a lone surrogate, which UTF-8 cannot encode."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return True
    return False


def result_frame(request_id: RequestId, body: bytes) -> bytes:
    """Return a response with an encoded result."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(request_id), body)


def error_frame(request_id: RequestId | None, error: WireError, *, null_id: bool) -> bytes:
    """Return an error response. Without an id, `null_id` selects a null id or no `id` member."""
    if request_id is not None or null_id:
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (encode(request_id), encode(error))
    return b'{"jsonrpc":"2.0","error":%b}' % encode(error)


def notification_frame(method: str, params: Any = None) -> bytes:
    if params is None:
        return b'{"jsonrpc":"2.0","method":%b}' % encode(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (encode(method), encode(params))


def request_frame(request_id: RequestId, method: str, params: JsonObject) -> bytes:
    head = (encode(request_id), encode(method))
    if not params:
        return b'{"jsonrpc":"2.0","id":%b,"method":%b}' % head
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (*head, encode(params))


def _check_depth(value: Any, frame: bytes) -> None:
    # This few brackets cannot exceed the maximum depth.
    if frame.count(b"{") + frame.count(b"[") <= MAX_DEPTH:
        return
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _containers_in(outer)]
        if not level:
            return
    raise MalformedFrame(InvalidRequest(_TOO_DEEP), request_id_of(value))


def _containers_in(value: Any) -> list[Any]:
    items = value.values() if type(value) is dict else value if type(value) is list else ()
    return [item for item in items if type(item) is dict or type(item) is list]


def _count_keys(value: Any) -> int:
    if type(value) is dict:
        count = len(value)
        for item in value.values():
            if type(item) is dict or type(item) is list:
                count += _count_keys(item)
        return count
    if type(value) is list:
        return sum(map(_count_keys, value))
    return 0


class _DuplicateKey(Exception):
    def to_malformed_frame(self, frame: bytes) -> MalformedFrame:
        problem = f"Invalid Request: the key {_quote_key(str(self))} occurs twice"
        return MalformedFrame(InvalidRequest(problem), _unambiguous_id(frame))


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a decoded object. Raises `_DuplicateKey` if a key occurs twice."""
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKey(key)
            seen.add(key)
    return result


def _check_duplicates(frame: bytes) -> None:
    # Only the standard library's decoder reports every key-value pair.
    import json

    try:
        json.loads(frame, object_pairs_hook=_object_without_duplicates)
    except _DuplicateKey as duplicate:
        raise duplicate.to_malformed_frame(frame) from None


def _unambiguous_id(frame: bytes) -> RequestId | None:
    """Return the id of a message with duplicate keys, or `None` if the id itself is duplicated."""
    import json

    top: list[tuple[str, Any]] = []

    def remember(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        top[:] = pairs
        return dict(pairs)

    value = json.loads(frame, object_pairs_hook=remember)
    ids = [item for key, item in top if key == "id"]
    return request_id_of(value) if len(ids) == 1 else None


def _decode_slowly(frame: bytes) -> Decoded:
    """Decode a frame that the fast decoder refused. Raises `MalformedFrame`, with the id if readable."""
    import json

    frame = frame.removeprefix(_BOM)
    try:
        text = frame.decode()
        value = json.loads(
            text,
            object_pairs_hook=_object_without_duplicates,
            parse_constant=_reject_constant,
            parse_float=_parse_finite_float,
        )
    except _DuplicateKey as duplicate:
        raise duplicate.to_malformed_frame(frame) from None
    except RecursionError:
        raise MalformedFrame(InvalidRequest(_TOO_DEEP), find_request_id(frame)) from None
    except ValueError as problem:
        raise MalformedFrame(ParseError(_parse_error_message(problem)), _find_id_leniently(frame)) from None
    _check_depth(value, frame)
    return Decoded(value, may_have_surrogates=True)


def _parse_error_message(problem: ValueError) -> str:
    if isinstance(problem, UnicodeDecodeError):
        return f"Parse error: not UTF-8 (byte {problem.start})"
    position = getattr(problem, "pos", None)
    return "Parse error" if position is None else f"Parse error: not JSON (character {position})"


def _reject_constant(constant: str) -> Any:
    raise ValueError(constant)


def _parse_finite_float(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError("number out of range")
    return number


def _find_id_leniently(frame: bytes) -> RequestId | None:
    """Return the id of a frame that is almost JSON, despite NaN, control characters or invalid bytes."""
    import json

    if len(frame) > LONG_BYTES:
        # Replacing many invalid bytes is slow.
        return find_request_id(frame)
    try:
        text = frame.decode(errors="replace")
        value = json.loads(text, strict=False, parse_int=_parse_bounded_int)
    except (ValueError, RecursionError):
        return None
    return request_id_of(value)


def _parse_bounded_int(digits: str) -> int | None:
    return int(digits) if len(digits) <= 1000 else None


_SCALAR: Final = rb'(?:"(?:[^"\\]|\\.){0,1024}"|-?\d{1,100}|true|false|null)'
_MEMBER: Final = rb'\s*"(?:[^"\\]|\\.){0,1024}"\s*:\s*' + _SCALAR + rb"\s*"
_HEAD: Final = rb"\s*\{((?:" + _MEMBER + rb",)*)"
_TAIL: Final = rb"((?:," + _MEMBER + rb")++)\}\s*\Z"

#: The number of bytes at either end of a frame that are searched for its id.
END_BYTES: Final = 4096


def find_request_id(frame: bytes) -> RequestId | None:
    """Return the id of a message without decoding it, from the scalar members at either end."""
    return find_request_id_at_ends(frame[:END_BYTES], frame[-END_BYTES:])


def find_request_id_at_ends(head: bytes, tail: bytes) -> RequestId | None:
    """Like `find_request_id`, for a message of which only the ends are available.

    Members before the first and after the last nested object or array belong to the message itself, so an id
    found there is its id.
    """
    for match in (re.match(_HEAD, head), re.search(_TAIL, tail)):
        members = match.group(1).strip().strip(b",") if match else b""
        if not members:
            continue
        try:
            value = _decode(b"{" + members + b"}")
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if (request_id := request_id_of(value)) is not None:
            return request_id
    return None


def _quote_key(key: str) -> str:
    shown = key if len(key) <= 60 else key[:60] + "..."
    return '"' + shown.encode("ascii", "backslashreplace").decode() + '"'
