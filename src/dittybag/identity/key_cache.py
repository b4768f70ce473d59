"""The issuer's keys as they are now: fetched when needed, renewed in time, kept through an outage."""

from __future__ import annotations

import logging
from asyncio import Task, create_task, timeout, wait
from collections.abc import Awaitable, Callable
from math import inf
from typing import Final

from dittybag.identity.bounded_fetch import reason
from dittybag.identity.identity_errors import KeysUnavailable
from dittybag.identity.jwk_sets import KeySet

#: From this age on they are renewed, while requests go on with the old ones.
RENEWED_AFTER: Final = 9 * 60.0
#: From this age on requests wait for the new ones: a key that was withdrawn is good no longer than this.
OLD_AFTER: Final = 10 * 60.0
#: So long they are kept if no new ones can be had.
KEPT_FOR: Final = 60 * 60.0
#: So long it takes until a failed attempt is repeated, and until another unknown key is asked for.
PAUSE: Final = 10.0
#: So long nobody is made to wait after a failed attempt, as long as there are keys.
PATIENCE: Final = 60.0
#: One attempt takes no longer than this.
DEADLINE: Final = 5.0

_log = logging.getLogger("dittybag.identity")


class KeyCache:
    """The keys of one issuer."""

    def __init__(
        self,
        fetch: Callable[[], Awaitable[bytes]],
        parse: Callable[[bytes], KeySet],
        now: Callable[[], float],
    ) -> None:
        self._fetch = fetch
        self._parse = parse
        self._now = now
        self._keys = KeySet(())
        self._document: bytes | None = None
        self._fetched_at = -inf
        #: When the last attempt failed, and why; both are wiped by one that succeeds.
        self._failed_at = -inf
        self._problem = ""
        #: When a token last asked for a key that is not here.
        self._missed_at = -inf
        self._renewal: Task[None] | None = None

    def fresh(self, now: float) -> KeySet | None:
        """The keys, if there is nothing to be done about them."""
        return self._keys if 0 <= now - self._fetched_at < RENEWED_AFTER else None

    async def keys(self) -> KeySet:
        """The keys, which are renewed first if they are old. Raises `KeysUnavailable`."""
        now = self._now()
        age = self._age(now)
        if age < RENEWED_AFTER:
            return self._keys
        renewal = self._renewed(now)
        failed_lately = _is_within(PATIENCE, self._failed_at, now)
        if renewal is not None and (age >= KEPT_FOR or (age >= OLD_AFTER and not failed_lately)):
            await wait((renewal,))
        if self._age(self._now()) >= KEPT_FOR:
            raise KeysUnavailable(self._problem or "the keys of the OAuth issuer were not fetched in time")
        return self._keys

    async def newer(self) -> KeySet:
        """The keys after another look, because one is missing. A flood of such calls looks once.

        Raises `KeysUnavailable` if nobody could look.
        """
        now = self._now()
        if self._renewal is None and _is_within(PAUSE, self._missed_at, now):
            renewal = None
        else:
            self._missed_at = now
            renewal = self._renewed(now)
        if renewal is not None:
            await wait((renewal,))
        if self._problem:
            raise KeysUnavailable(self._problem)
        return self._keys

    async def close(self) -> None:
        """Stop what is under way."""
        if self._renewal is not None:
            self._renewal.cancel()
            await wait((self._renewal,))

    def _age(self, now: float) -> float:
        if now < self._fetched_at:
            # The clock was set back, and nobody knows how old they are.
            self._fetched_at = now - OLD_AFTER
        return now - self._fetched_at

    def _renewed(self, now: float) -> Task[None] | None:
        """The attempt that is under way or due; nothing so soon after one that failed."""
        if self._renewal is None and not _is_within(PAUSE, self._failed_at, now):
            self._renewal = create_task(self._renew(now))
        return self._renewal

    async def _renew(self, now: float) -> None:
        try:
            async with timeout(DEADLINE):
                document = await self._fetch()
            # The same keys stay the same object, for those who remember what they did with it.
            if document != self._document:
                self._keys, self._document = self._parse(document), document
        except TimeoutError:
            self._fail(now, f"no answer within {DEADLINE:.0f} seconds")
        except Exception as error:  # noqa: BLE001  # whatever a fetch raises, the keys that are here go on
            self._fail(now, reason(error))
        else:
            self._fetched_at, self._failed_at, self._problem = now, -inf, ""
        finally:
            self._renewal = None

    def _fail(self, now: float, problem: str) -> None:
        self._failed_at = now
        said = "".join(one if one.isprintable() else "?" for one in problem[:500])
        self._problem = f"the keys of the OAuth issuer cannot be fetched: {said}"
        _log.warning("%s", self._problem)


def _is_within(seconds: float, since: float, now: float) -> bool:
    """That long has not passed yet. After the clock was set back, it has."""
    return 0 <= now - since < seconds
