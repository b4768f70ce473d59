"""From which end of a sorted list a page is found sooner."""

from __future__ import annotations


def from_nearer_end(order: str, limit: int, offset: int, total: int) -> tuple[str, int, int]:
    """Return the order, limit and offset that find the rows of a page from the nearer end of a list.

    A database reads all rows before a page. `order`: the terms of ORDER BY.
    """
    after = total - offset - limit
    if after >= offset:
        return order, limit, offset
    return _reverse(order), max(min(limit, total - offset), 0), max(after, 0)


def _reverse(order: str) -> str:
    terms = order.split(", ")
    return ", ".join(
        term.removesuffix(" DESC") if term.endswith(" DESC") else f"{term} DESC" for term in terms
    )
