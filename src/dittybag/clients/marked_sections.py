"""Sections of a text file between two comments, inserted and removed without changing anything else."""

from __future__ import annotations

from dittybag.clients.client_errors import MalformedConfig


def begin_mark(name: str) -> str:
    """Return the start of the comment that begins a section."""
    return f"<!-- dittybag:begin {name}. "


def end_mark(name: str) -> str:
    """Return the comment that ends a section, with its line break."""
    return f"<!-- dittybag:end {name} -->\n"


def find_section(text: str, name: str) -> str | None:
    """Return a section with its marks, or `None`. Raises `MalformedConfig` if its end is missing."""
    start = text.find(begin_mark(name))
    if start < 0:
        return None
    end = text.find(end_mark(name), start)
    if end < 0:
        raise MalformedConfig(f"the comment that ends the section '{name}' is missing")
    return text[start : end + len(end_mark(name))]


def gap_before_end(text: str) -> str:
    """Return what separates a section from the text that it is added to."""
    if not text or text.endswith("\n\n"):
        return ""
    return "\n" if text.endswith("\n") else "\n\n"


def remove_section(text: str, section: str, gap: str) -> str:
    """Return a text without a section that it contains, and without the gap before it."""
    start = text.index(section)
    before, after = text[:start], text[start + len(section) :]
    if gap and before.endswith(gap):
        rest = before[: -len(gap)]
        # Text that was added below the section stays on lines of its own.
        is_joined = rest and not rest.endswith("\n") and after and not after.startswith(("\n", "\r\n"))
        before = f"{rest}\n" if is_joined else rest
    return before + after
