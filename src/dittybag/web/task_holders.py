"""Who holds a task and until when, for display."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dittybag.domain.changes import Interface
from dittybag.domain.claims import MICROSECONDS
from dittybag.domain.tasks import TaskListing
from dittybag.services.project_overview import is_person
from dittybag.services.task_details import TaskDetails

#: Seconds of each unit of time, longest first, as in the script that counts down.
_SPANS: Final = ((3600, "h"), (60, "min"), (1, "s"))
_WEB_SUFFIX: Final = " via web"


class HolderDisplay(Struct, frozen=True, kw_only=True):
    """The holder of a claim for display."""

    name: str
    is_person: bool
    #: When the claim lapses, in microseconds since 1970.
    until: int
    #: Until then; 0 if it has lapsed.
    seconds: int

    @property
    def has_lapsed(self) -> bool:
        return self.seconds == 0

    @property
    def word(self) -> str:
        return "person" if self.is_person else "agent"

    @property
    def left(self) -> str:
        """How long the claim lasts, as in `12 min left`."""
        return format_left(self.seconds)


def holder_of(task: TaskListing, now: int, person: str) -> HolderDisplay | None:
    """Return the holder of a listed task; `None` if nobody has claimed it.

    `now`: in microseconds since 1970. `person`: the actor name of the person at this machine.
    """
    if task.holder is None or task.held_until is None:
        return None
    return _display(task.holder, task.held_until, task.claimed_via, now, person)


def holder_of_details(details: TaskDetails, now: int, person: str) -> HolderDisplay | None:
    """Return the holder of a task; `None` if nobody has claimed it."""
    claim = details.last_claim
    return None if claim is None else _display(claim.holder, claim.until, details.claimed_via, now, person)


def _display(name: str, until: int, via: Interface | None, now: int, person: str) -> HolderDisplay:
    # Rounded up, so that a claim with 0 seconds left has lapsed.
    seconds = max(-((now - until) // MICROSECONDS), 0)
    is_by_person = is_person(name, via, person)
    return HolderDisplay(
        name=name.removesuffix(_WEB_SUFFIX) if is_by_person else name,
        is_person=is_by_person,
        until=until,
        seconds=seconds,
    )


def format_left(seconds: int) -> str:
    """Format the time that is left, as in `12 min left`."""
    span, unit = next(((span, unit) for span, unit in _SPANS if seconds >= span), _SPANS[-1])
    return f"{seconds // span} {unit} left"
