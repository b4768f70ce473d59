"""The filters of a list that are in use, each with a link that removes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from dittybag.web.browser_requests import WebRequest

#: Query parameters that belong to the results so far: positions.
_OF_RESULTS: Final[dict[str, None]] = dict.fromkeys(("page", "first", "before", "after"))


class FilterChip(Struct, frozen=True):
    """A filter in use; of several values of a query parameter, one."""

    #: The query parameter.
    name: str
    label: str
    #: The value for display.
    text: str
    #: The URL of the list without it.
    remove: str
    #: The value in the query parameter, if that holds several.
    value: str = ""


def filter_chips(request: WebRequest, filters: Iterable[tuple[str, str, str]]) -> list[FilterChip]:
    """Return a chip for each filter with a value. A filter: its query parameter, label and value."""
    return [
        FilterChip(name, label, text, without_filters(request, [name]))
        for name, label, text in filters
        if text
    ]


def value_chips(request: WebRequest, name: str, label: str, values: Sequence[str]) -> list[FilterChip]:
    """Return a chip for each of the values, which a query parameter holds separated by commas."""
    return [
        FilterChip(
            name,
            label,
            value,
            request.with_query(
                **_OF_RESULTS, **{name: ",".join(other for other in values if other != value)}
            ),
            value,
        )
        for value in values
    ]


def without_filters(request: WebRequest, names: Iterable[str]) -> str:
    """Return the URL of the first page of the list without these query parameters."""
    return request.with_query(**_OF_RESULTS, **dict.fromkeys(names))
