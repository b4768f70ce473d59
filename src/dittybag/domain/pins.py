"""Pins: what the context packs of a project always have, as far as they have room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from dittybag.domain.errors import clip
from dittybag.domain.text import line_problem

MAX_PINS: Final = 50
PIN_LENGTH: Final = 300

PinKind = Literal["prompt", "resource", "task", "library"]
PIN_KINDS: Final[tuple[PinKind, ...]] = ("prompt", "resource", "task", "library")


def pin_of(kind: PinKind, key: str | int) -> str:
    """Return the pin of an entity by its id, or of a library prompt by its name."""
    return f"{kind}:{key}"


def split_pin(pin: str) -> tuple[PinKind, str]:
    """Return the kind of a valid pin, and the id or name."""
    prefix, _, key = pin.partition(":")
    return next(kind for kind in PIN_KINDS if kind == prefix), key


def pins_problem(pins: Sequence[str]) -> str | None:
    """Return what is wrong with the pins of a project, or `None`."""
    if len(pins) > MAX_PINS:
        return f"A project can have at most {MAX_PINS} pinned items"
    for pin in pins:
        prefix, _, key = pin.partition(":")
        is_valid = prefix in PIN_KINDS and bool(key) and len(pin) <= PIN_LENGTH
        if prefix == "task":
            is_valid = is_valid and key.isascii() and key.isdigit() and len(key) < 19
        if not is_valid or line_problem("", pin) is not None:
            return f"'{clip(pin, 60)}' is not a pin: use prompt:ID, resource:ID, task:ID or library:NAME"
    return None
