"""Claims: who works on a task and until when."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from dittybag.domain.queries import OWN_TASKS, TaskView

#: A lease in seconds.
MIN_LEASE: Final = 1
MAX_LEASE: Final = 24 * 3600
DEFAULT_LEASE: Final = 15 * 60
#: In seconds: how long a call may wait for a ready task.
MAX_WAIT: Final = 24 * 3600

MICROSECONDS: Final = 1_000_000

_DURATION: Final = r"(\d{1,6})\s*(s|sec|m|min|h|d)?"
_SECONDS: Final = {"": 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


class Claim(Struct, frozen=True):
    """The right to work on a task until the lease lapses. All times are in microseconds."""

    task: int
    #: The `seq` of the change that claimed it. The holder names it in every write.
    fence: int
    holder: str
    #: The connection whose end releases it; empty if it does not depend on one.
    connection: str
    claimed_at: int
    #: How long it lasts without a renewal.
    lease: int
    until: int

    def is_live(self, now: int) -> bool:
        return now < self.until


class ReadyQuery(Struct, frozen=True, kw_only=True):
    """Selects tasks that are ready to be claimed, best first."""

    user: str
    view: TaskView = OWN_TASKS
    #: What the caller is called: a task that is assigned to somebody else is not ready.
    names: tuple[str, ...] = ()
    #: The name of the project; empty for tasks that are the user's alone.
    project: str | None = None
    #: Each of these labels.
    labels: tuple[str, ...] = ()
    #: Claims that end until then have lapsed.
    now: int
    limit: int = 1


def parse_duration(text: str) -> int | None:
    """Return a duration such as `90s`, `15m`, `2h` or a number of seconds, in seconds; `None` if invalid."""
    found = re.fullmatch(_DURATION, text.strip().lower())
    return None if found is None else int(found[1]) * _SECONDS[found[2] or ""]
