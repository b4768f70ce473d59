"""The visits of a browser to Home, kept in a cookie: where the log was when the last one ended."""

from __future__ import annotations

import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.http.asgi_messages import Header
from dittybag.web.browser_requests import WebRequest, cookie, cookies, parse_number
from dittybag.web.web_sessions import WebSession

_COOKIE: Final = "dittybag-visit"
_COOKIE_SECONDS: Final = 180 * 24 * 3600
#: A visit is over after this time without a request for Home.
VISIT_SECONDS: Final = 30 * 60
#: Maximum number of actors whose changes were undone during a visit.
_MAX_UNDONE: Final = 20
_KEY_LENGTH: Final = 10


class Visit(Struct, frozen=True, kw_only=True):
    """A visit to Home. Times are in seconds since 1970."""

    #: Identifies the log and the user: another workspace may have the same host name.
    log: str
    #: The newest change when the visit before this one ended, and when that was; 0 if there was none.
    last_seq: int = 0
    last_at: int = 0
    #: The newest change at the latest request, and when that was.
    seq: int = 0
    at: int = 0
    #: The newest change up to which the changes of an actor were undone, by `actor_key`.
    undone: Mapping[str, int] = {}

    def undone_up_to(self, actor: str) -> int:
        """Return the newest change up to which the changes of an actor were undone."""
        return self.undone.get(_key(actor), 0)

    def with_undone(self, actor: str, seq: int) -> Visit:
        kept = dict(list(self.undone.items())[1 - _MAX_UNDONE :])
        return replace(self, undone={**kept, _key(actor): seq})

    def header(self, request: WebRequest) -> Header:
        """Return the header that stores the visit."""
        undone = [f"{key}:{seq}" for key, seq in self.undone.items()]
        value = ".".join([self.log, *map(str, (self.last_seq, self.last_at, self.seq, self.at)), *undone])
        is_secure = request.origin.startswith("https:")
        return cookie(_COOKIE, value, seconds=_COOKIE_SECONDS, secure=is_secure)


def read_visit(request: WebRequest, started_at: int | None, newest: int) -> Visit:
    """Return the visit that a request belongs to: the stored one, or the next one if that is over.

    `started_at`: the time of the first change of the log. `newest`: the `seq` of the newest.
    """
    log = _log_key(request.session, started_at)
    stored = _parse(cookies(request.headers).get(_COOKIE, ""))
    if stored is None or stored.log != log or stored.seq > newest:
        return Visit(log=log)
    if time.time() - stored.at <= VISIT_SECONDS:
        return stored
    return Visit(log=log, last_seq=stored.seq, last_at=stored.at)


def continued(visit: Visit, newest: int) -> Visit:
    """Return the visit after a request that shows the log up to `newest`."""
    return replace(visit, seq=newest, at=int(time.time()))


def _parse(text: str) -> Visit | None:
    log, *numbers = text.split(".")
    undone = [item.partition(":") for item in numbers[4 : 4 + _MAX_UNDONE]]
    values = [parse_number(number) for number in numbers[:4]]
    if len(values) < 4:
        return None
    last_seq, last_at, seq, at = (value or 0 for value in values)
    return Visit(
        log=log,
        last_seq=last_seq,
        last_at=last_at,
        seq=seq,
        at=at,
        undone={key[:_KEY_LENGTH]: parse_number(number) or 0 for key, _, number in undone if key.isalnum()},
    )


def _log_key(session: WebSession, started_at: int | None) -> str:
    return _key(f"{started_at} {session.name or ''}")


def _key(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:_KEY_LENGTH]
