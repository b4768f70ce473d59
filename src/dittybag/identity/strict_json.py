"""JSON objects from strangers, read so strictly that nobody else can read them differently."""

from __future__ import annotations

from typing import Any, Final, NoReturn

#: Objects and lists in all, so that the depth has a limit that is the same with every Python.
MOST_PARTS: Final = 500


def json_object(data: bytes) -> dict[str, Any]:
    """The object that `data` is, in UTF-8. Raises `ValueError`, also if a name comes twice in an object."""
    import json

    if data.count(b"{") + data.count(b"[") > MOST_PARTS:
        raise ValueError(f"it has more than {MOST_PARTS} objects and lists in it")
    try:
        # Handed bytes, it would guess at UTF-16 as well.
        found = json.loads(data.decode(), object_pairs_hook=_object, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004  # of the data, not of an argument
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice in an object")
    return found


def _refuse(name: str) -> NoReturn:
    raise ValueError("it has a number in it that JSON does not know")
