"""The claims of connections: calls of a connection renew them, and its end releases them."""

from __future__ import annotations

import logging
from time import monotonic
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.claims import MICROSECONDS, Claim
from dittybag.domain.errors import DittybagError
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace

#: Claims are renewed when this part of the shortest lease has passed.
_RENEWED_AFTER: Final = 1 / 3

_log = logging.getLogger("dittybag")


class _Held(Struct):
    """The claims of a connection."""

    #: When they were renewed last.
    renewed_at: float
    #: The leases in seconds, by task.
    leases: dict[int, float]

    def is_due(self) -> bool:
        return monotonic() - self.renewed_at >= _RENEWED_AFTER * min(self.leases.values())


class ConnectionClaims:
    """Which tasks the connections of this process hold, so that a call without claims costs nothing."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}

    def __bool__(self) -> bool:
        """Whether a connection holds a task."""
        return bool(self._held)

    def add(self, connection: str, claim: Claim) -> None:
        """Remember a new claim. Without a connection, nothing renews it but its fence."""
        if connection:
            held = self._held.setdefault(connection, _Held(monotonic(), {}))
            held.leases[claim.task] = claim.lease / MICROSECONDS

    def remove(self, connection: str, task: int) -> None:
        """Forget a claim that has ended."""
        held = self._held.get(connection)
        if held is not None:
            held.leases.pop(task, None)
            if not held.leases:
                del self._held[connection]

    async def renew(self, workspace: Workspace, caller: Caller, connection: str) -> None:
        """Renew the claims of a connection, if that is due."""
        held = self._held.get(connection)
        if held is None or not held.is_due():
            return
        held.renewed_at = monotonic()
        try:
            renewed = await workspace.task_queue.renew(_plain(caller), connection)
        except DittybagError as error:
            # The call itself may succeed.
            _log.warning("the claims of a connection could not be renewed: %s", error)
            return
        if not renewed:
            self._held.pop(connection, None)

    async def release(
        self, workspace: Workspace, caller: Caller, connection: str, *, is_shared: bool
    ) -> None:
        """Release the claims of a connection that has ended.

        `is_shared`: it may have others than those of this process.
        """
        if self._held.pop(connection, None) is None and not is_shared:
            return
        try:
            await workspace.task_queue.release_connection(_plain(caller), connection)
        except DittybagError as error:
            # They lapse.
            _log.warning("the claims of a connection could not be released: %s", error)


def _plain(caller: Caller) -> Caller:
    """Return a caller whose write is not in the order of its requests."""
    return replace(caller, when_queued=None)
