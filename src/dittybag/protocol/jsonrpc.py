"""JSON-RPC 2.0 messages: bytes to objects and back, strictly."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

from dittybag.protocol.types import JsonObject, RequestId
from dittybag.protocol.wire_errors import InvalidRequest, ParseError, ProtocolError, WireError

encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode

#: Strings longer than this are never an id worth echoing.
MAX_ID_CHARACTERS: Final = 1024

#: Objects and arrays nested deeper than this are refused, before they exhaust somebody's stack.
MAX_DEPTH: Final = 200

#: Too short for that many pairs of brackets.
_SHORT: Final = 2 * MAX_DEPTH
_TOO_DEEP: Final = f"Invalid Request: nested more than {MAX_DEPTH} levels deep"
_BOM: Final = b"\xef\xbb\xbf"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class MalformedFrame(Exception):
    """A frame that cannot be processed, with the id to answer to where one could be read."""

    def __init__(self, error: ProtocolError, request_id: RequestId | None = None) -> None:
        self.error = error
        self.request_id = request_id
        super().__init__(str(error))


class Decoded(Struct, frozen=True):
    """A frame that is JSON."""

    value: Any
    #: Somewhere a string holds half a surrogate pair: JSON allows it, text does not.
    has_lone_surrogates: bool = False


def decode(frame: bytes) -> Decoded:
    """The JSON value in `frame`. Raises `MalformedFrame`."""
    try:
        value = _decode(frame)
        if len(frame) > _SHORT:
            _check_depth(value, frame)
        # Most clients write JSON just as we do, and we never write a key twice. For the others: each pair
        # needs a colon, so as many colons as keys means that no key came twice. The rest is looked at again.
        if encode(value) != frame and frame.count(b":") != _count_keys(value):
            _check_duplicates(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_slowly(frame)
    return Decoded(value)


def request_id_of(value: Any) -> RequestId | None:
    """The id of a message, if it is one that an answer may carry. `1.0` and `true` are not."""
    candidate = value.get("id") if type(value) is dict else None
    if type(candidate) is int or (type(candidate) is str and len(candidate) <= MAX_ID_CHARACTERS):
        return None if type(candidate) is str and has_surrogate(candidate) else candidate
    return None


def has_surrogate(text: str) -> bool:
    """Whether `text` holds half a surrogate pair, which no UTF-8 can express."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def result_frame(request_id: RequestId, body: bytes) -> bytes:
    """The answer that carries an encoded result."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(request_id), body)


def error_frame(request_id: RequestId | None, error: WireError, *, null_id: bool) -> bytes:
    """The answer that carries an error; without an id, `null_id` says whether it is null or left out."""
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
    # Few brackets cannot be nested deeply.
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
    """An object of the decoder; a key that comes twice raises `_DuplicateKey`."""
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKey(key)
            seen.add(key)
    return result


def _check_duplicates(frame: bytes) -> None:
    # The standard library's decoder is the one that shows every pair.
    import json

    try:
        json.loads(frame, object_pairs_hook=_object_without_duplicates)
    except _DuplicateKey as duplicate:
        raise duplicate.to_malformed_frame(frame) from None


def _unambiguous_id(frame: bytes) -> RequestId | None:
    """The id of a message in which some key occurs twice, unless that key is the id itself."""
    import json

    top: list[tuple[str, Any]] = []

    def remember(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        top[:] = pairs
        return dict(pairs)

    value = json.loads(frame, object_pairs_hook=remember)
    ids = [item for key, item in top if key == "id"]
    return request_id_of(value) if len(ids) == 1 else None


def _decode_slowly(frame: bytes) -> Decoded:
    """A second look at what the fast decoder refused: is it JSON after all, or at least, whom to answer?"""
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
    return Decoded(value, has_lone_surrogates=True)


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
    """The id of what is nearly JSON: a stray NaN, control character or bad byte does not hide it."""
    import json

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
_HEAD: Final = re.compile(rb"\s*\{((?:" + _MEMBER + rb",)*)")
_TAIL: Final = re.compile(rb"((?:," + _MEMBER + rb")++)\}\s*\Z")

#: How much of either end of a frame is enough to look for its id.
END_BYTES: Final = 4096


def find_request_id(frame: bytes) -> RequestId | None:
    """The id of a message that is not decoded as a whole, read from the plain members at either end."""
    return find_request_id_at_ends(frame[:END_BYTES], frame[-END_BYTES:])


def find_request_id_at_ends(head: bytes, tail: bytes) -> RequestId | None:
    """Like `find_request_id`, for a message of which only the ends were kept.

    The members before the first and after the last object or array of a message belong to the message
    itself, so an id found there is its id.
    """
    for match in (_HEAD.match(head), _TAIL.search(tail)):
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
