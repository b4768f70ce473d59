"""A strict parser for untrusted JSON objects, without ambiguities such as duplicate names."""

from __future__ import annotations

from typing import Any, Final, NoReturn

#: Maximum number of objects and lists. It bounds the depth independently of the Python version.
MAX_CONTAINERS: Final = 500


def json_object(data: bytes) -> dict[str, Any]:
    """Parse a JSON object in UTF-8. Raises `ValueError`, also for a duplicate name in an object."""
    import json

    if data.count(b"{") + data.count(b"[") > MAX_CONTAINERS:
        raise ValueError(f"it contains more than {MAX_CONTAINERS} objects and lists")
    try:
        # Given bytes, `loads` would accept UTF-16 as well.
        found = json.loads(data.decode(), object_pairs_hook=_unique_names, parse_constant=_reject_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004  # the data is wrong, not the type of an argument
    return found


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a duplicate name")
    return found


def _reject_constant(name: str) -> NoReturn:
    raise ValueError("it contains NaN or Infinity, which JSON does not allow")
