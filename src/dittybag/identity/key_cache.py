"""Cache of an issuer's keys: fetched on demand, refreshed in the background, kept during an outage."""

from __future__ import annotations

import logging
from asyncio import Task, create_task, timeout, wait
from collections.abc import Awaitable, Callable
from math import inf
from typing import Final

from dittybag.identity.bounded_fetch import describe_error
from dittybag.identity.identity_errors import KeysUnavailable
from dittybag.identity.jwk_sets import KeySet

#: From this age on, keys are refreshed in the background while requests use the cached ones.
REFRESH_AFTER: Final = 9 * 60.0
#: From this age on, requests wait for the refresh. A withdrawn key is therefore refused after this time.
STALE_AFTER: Final = 10 * 60.0
#: Maximum age of keys if the refresh fails.
MAX_AGE: Final = 60 * 60.0
#: Minimum time between a failed fetch and the next one, and between two fetches for unknown keys.
RETRY_DELAY: Final = 10.0
#: For this long after a failed fetch, requests use stale keys instead of waiting.
FAILURE_GRACE: Final = 60.0
#: Timeout of one fetch.
FETCH_TIMEOUT: Final = 5.0

_log = logging.getLogger("dittybag.identity")


class KeyCache:
    """The cached keys of one issuer."""

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
        #: When and why the last fetch failed. A successful fetch resets both.
        self._failed_at = -inf
        self._problem = ""
        #: When a token last named an unknown key.
        self._missed_at = -inf
        self._refresh_task: Task[None] | None = None

    def get_fresh(self, now: float) -> KeySet | None:
        """Return the keys if they need no refresh, else `None`."""
        return self._keys if 0 <= now - self._fetched_at < REFRESH_AFTER else None

    async def get(self) -> KeySet:
        """Return the keys, refreshed first if they are stale. Raises `KeysUnavailable`."""
        now = self._now()
        age = self._age(now)
        if age < REFRESH_AFTER:
            return self._keys
        task = self._start_refresh(now)
        failed_recently = _is_within(FAILURE_GRACE, self._failed_at, now)
        if task is not None and (age >= MAX_AGE or (age >= STALE_AFTER and not failed_recently)):
            await wait((task,))
        if self._age(self._now()) >= MAX_AGE:
            raise KeysUnavailable(self._problem or "the keys of the OAuth issuer were not fetched in time")
        return self._keys

    async def refresh(self) -> KeySet:
        """Return the keys after another fetch, because a key is missing. Concurrent calls share one fetch.

        Raises `KeysUnavailable` if the fetch fails.
        """
        now = self._now()
        if self._refresh_task is None and _is_within(RETRY_DELAY, self._missed_at, now):
            task = None
        else:
            self._missed_at = now
            task = self._start_refresh(now)
        if task is not None:
            await wait((task,))
        if self._problem:
            raise KeysUnavailable(self._problem)
        return self._keys

    async def close(self) -> None:
        """Cancel the current fetch."""
        if self._refresh_task is not None:
            self._refresh_task.cancel()
            await wait((self._refresh_task,))

    def _age(self, now: float) -> float:
        if now < self._fetched_at:
            # The clock was set back, so the age is unknown: treat the keys as stale.
            self._fetched_at = now - STALE_AFTER
        return now - self._fetched_at

    def _start_refresh(self, now: float) -> Task[None] | None:
        """Return the running fetch, or start one. Return `None` within the delay after a failure."""
        if self._refresh_task is None and not _is_within(RETRY_DELAY, self._failed_at, now):
            self._refresh_task = create_task(self._fetch_keys(now))
        return self._refresh_task

    async def _fetch_keys(self, now: float) -> None:
        try:
            async with timeout(FETCH_TIMEOUT):
                document = await self._fetch()
            # Unchanged keys stay the same object: the cache of verified tokens compares by identity.
            if document != self._document:
                self._keys, self._document = self._parse(document), document
        except TimeoutError:
            self._fail(now, f"no response within {FETCH_TIMEOUT:.0f} seconds")
        except Exception as error:  # noqa: BLE001  # whatever a fetch raises, the cached keys stay in use
            self._fail(now, describe_error(error))
        else:
            self._fetched_at, self._failed_at, self._problem = now, -inf, ""
        finally:
            self._refresh_task = None

    def _fail(self, now: float, problem: str) -> None:
        self._failed_at = now
        text = "".join(char if char.isprintable() else "?" for char in problem[:500])
        self._problem = f"the keys of the OAuth issuer cannot be fetched: {text}"
        _log.warning("%s", self._problem)


def _is_within(seconds: float, since: float, now: float) -> bool:
    """Return whether fewer than `seconds` have passed. `False` after the clock was set back."""
    return 0 <= now - since < seconds
