"""The gate: over HTTP, nobody gets in without a token."""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from math import ceil
from typing import Any, Final, Protocol

from msgspec import Struct

from dittybag.domain.accounts import PREFIX, Principal, Scope
from dittybag.domain.errors import DittybagError
from dittybag.protocol import InternalError
from dittybag.protocol.lazy_tls import asyncio
from dittybag.protocol.transports.http.asgi_messages import (
    ASKER,
    Application,
    Asker,
    AtOnce,
    AtOnceFor,
    Header,
    Headers,
    Receive,
    Refused,
    Send,
    Whole,
    refuse,
)
from dittybag.protocol.transports.http.asgi_messages import Scope as Request
from dittybag.protocol.wire_errors import InvalidRequest
from dittybag.services.account_service import AccountService

#: So long is somebody known without asking again: what is revoked is worthless everywhere within 5 seconds.
KNOWN_SECONDS: Final = 2.0
#: How often it is asked whether somebody is still welcome who listens to a stream.
WATCH_SECONDS: Final = 1.5
#: So many tokens are known at a time.
MAX_KNOWN: Final = 10_000
#: No token of anybody's is longer.
MAX_TOKEN: Final = 8192

#: Addresses that tell nothing but a status.
OPEN: Final = ("/healthz", "/readyz")
#: Addresses for which not every token will do.
NEEDED: Final[Mapping[str, Scope]] = {"/metrics": "admin"}

_AUTHORIZATION: Final = b"authorization"


class Rate(Struct, frozen=True):
    """How many requests a token is good for, in each process."""

    per_second: float = 50.0
    #: So many may come at once after a pause.
    burst: int = 200


class Verifier(Protocol):
    """Somebody who knows who a token belongs to."""

    async def verify(self, text: str) -> Principal | None:
        """Nothing for a token that is not valid, whatever is wrong with it.

        Raises `Refused` if that cannot be found out now, or if the token says too little.
        """
        ...


#: The value of WWW-Authenticate, for an error of RFC 6750 if there is one and the scope that is needed.
Challenge = Callable[[str | None, str | None], bytes]


def challenge(error: str | None = None, scope: str | None = None) -> bytes:
    """What a client is told that has to have a token."""
    parts = {"realm": "dittybag", "error": error, "scope": scope}
    said = ", ".join(f'{name}="{value}"' for name, value in parts.items() if value)
    return f"Bearer {said}".encode()


class OwnTokens:
    """Knows the tokens of `dittybag token create`. See `Verifier`."""

    def __init__(self, accounts: AccountService, project: int) -> None:
        self._accounts = accounts
        self._project = project
        self._noting: set[asyncio.Future[None]] = set()

    async def verify(self, text: str) -> Principal | None:
        try:
            found = await self._accounts.recognise(text, self._project)
        except DittybagError as error:
            raise Refused(503, InternalError(str(error)), headers=[(b"retry-after", b"1")]) from error
        if found is None:
            return None
        if found.to_note:
            # Nobody waits for that.
            noting = asyncio.ensure_future(self._note(found.token.id))
            self._noting.add(noting)
            noting.add_done_callback(self._noting.discard)
        return found.principal

    async def _note(self, id: int) -> None:
        # The next request tries again.
        with contextlib.suppress(DittybagError):
            await self._accounts.note_use(id)


class _Known:
    """Somebody who is known for a moment, and how much they have asked of late."""

    __slots__ = ("_filled_at", "_left", "_rate", "asker", "until")

    def __init__(self, rate: Rate) -> None:
        self.asker = Asker()
        #: Until then nobody has to be asked.
        self.until = 0.0
        self._rate = rate
        self._left = float(rate.burst)
        self._filled_at = time.monotonic()

    def spend(self, now: float) -> bool:
        """Count a request; whether there may be one."""
        rate = self._rate
        left = min(self._left + (now - self._filled_at) * rate.per_second, rate.burst)
        self._filled_at = now
        if left < 1:
            self._left = left
            return False
        self._left = left - 1
        return True

    @property
    def seconds_to_wait(self) -> int:
        return max(1, ceil((1 - self._left) / self._rate.per_second))


class Gate:
    """An application that lets only those through to another one who are known, and says who they are."""

    def __init__(
        self,
        inner: Application,
        own: Verifier,
        *,
        others: Verifier | None = None,
        rate: Rate | None = None,
        challenge: Challenge = challenge,
        open_to_all: tuple[str, ...] = OPEN,
    ) -> None:
        """`own`: knows our own tokens. `others`: knows all others. `open_to_all`: addresses without gate."""
        self._inner = inner
        self._own = own
        self._others = others
        self._rate = rate or Rate()
        self._challenge = challenge
        self._open = open_to_all
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    async def __call__(self, scope: Request, receive: Receive, send: Send) -> None:
        if scope["path"] in self._open:
            await self._inner(scope, receive, send)
            return
        try:
            token, asker = await self._let_in(scope)
        except Refused as refused:
            await refuse(send, refused)
            return
        watched = _Watched(lambda: self._is_welcome(token, asker), receive, send)
        await watched.run(self._inner, scope, self._refused("invalid_token"))

    def at_once(self, inner: AtOnceFor) -> AtOnce:
        """The same for requests that are answered at once: those whose token is known at this moment."""

        def gated(headers: Headers, body: bytes) -> Whole | Application | None:
            token: _Shown | None = headers.learned.get(self)
            known = None if token is None else self._known.get(token.key)
            if known is None:
                return None
            now = time.monotonic()
            if now >= known.until or not known.spend(now):
                return None
            return inner(headers, body, known.asker)

        return gated

    async def _let_in(self, scope: Request) -> tuple[_Shown, Asker]:
        """Who makes a request, which is said in it from now on. Raises `Refused`."""
        token = self._shown(Headers.of(scope))
        known = await self._recognised(token)
        if known is None:
            raise self._refused("invalid_token")
        asker = scope[ASKER] = known.asker
        if not known.spend(time.monotonic()):
            words = f"Too many requests: {self._rate.per_second:g} a second, and {self._rate.burst} at once"
            wait = (b"retry-after", b"%d" % known.seconds_to_wait)
            raise Refused(429, InvalidRequest(words), headers=[wait])
        needed = NEEDED.get(scope["path"])
        if needed is not None and not asker.grant.has(needed):
            words = f"This address is for tokens with the scope {needed}"
            raise Refused(403, InvalidRequest(words), headers=[self._told("insufficient_scope", needed)])
        return token, asker

    def _shown(self, headers: Headers) -> _Shown:
        """The token of a request. Raises `Refused`."""
        token: _Shown | None = headers.learned.get(self)
        if token is None:
            found = headers.all(_AUTHORIZATION)
            scheme, _, text = found[0].partition(" ") if len(found) == 1 else ("", "", "")
            if not found or (len(found) == 1 and scheme.lower() != "bearer"):
                raise self._refused(None)
            if not 0 < len(text) <= MAX_TOKEN:
                raise self._refused("invalid_token")
            # This follows from the head alone. Whether it is valid does not, and is not kept here.
            token = headers.learned[self] = _Shown(text, sha256(text.encode()).digest())
        return token

    async def _recognised(self, token: _Shown) -> _Known | None:
        known = self._known.get(token.key)
        if known is not None and time.monotonic() < known.until:
            return known
        begun = time.monotonic()
        verifier = self._own if token.text.startswith(PREFIX) else self._others
        principal = None if verifier is None else await verifier.verify(token.text)
        if principal is None:
            self._known.pop(token.key, None)
            return None
        # Another request may have put it there meanwhile.
        known = self._known.setdefault(token.key, known or _Known(self._rate))
        if known.asker.grant != principal:
            known.asker = Asker(principal.user, principal, hears=principal.sees_project)
        known.until = begun + KNOWN_SECONDS
        self._known.move_to_end(token.key)
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        return known

    async def _is_welcome(self, token: _Shown, asker: Asker) -> bool:
        """Whether somebody may go on listening, as who they were."""
        try:
            known = await self._recognised(token)
        except Refused:
            # It cannot be found out now; the next look tells.
            return True
        return known is not None and known.asker == asker

    def _refused(self, error: str | None) -> Refused:
        # The same words whatever is wrong: which of all the reasons it is would help only those who try.
        words = "This server needs a valid token: Authorization: Bearer TOKEN"
        return Refused(401, InvalidRequest(words), headers=[self._told(error, None)])

    def _told(self, error: str | None, scope: str | None) -> Header:
        return b"www-authenticate", self._challenge(error, scope)


class _Shown(Struct, frozen=True):
    """A token that somebody shows."""

    text: str
    key: bytes

    def __repr__(self) -> str:
        return "_Shown(...)"


class _Watched:
    """A request that ends when whoever made it is not welcome any more, as if they had gone."""

    def __init__(self, is_welcome: Callable[[], Awaitable[bool]], receive: Receive, send: Send) -> None:
        self._is_welcome = is_welcome
        self._receive = receive
        self._send = send
        self._has_body = False
        self._sent_away = False
        self._started = self._finished = False

    async def run(self, application: Application, request: Request, refused: Refused) -> None:
        """Have the request answered; one that is not answered when it ends is `refused`."""
        await application(request, self.receive, self.send)
        if self._sent_away and not self._started:
            await refuse(self._send, refused)
        elif self._sent_away and not self._finished:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def receive(self) -> Any:
        if not self._has_body:
            message = await self._receive()
            self._has_body = not message.get("more_body", False)
            return message
        # From now on there is nothing to wait for but that the client goes.
        going = asyncio.ensure_future(self._receive())
        try:
            while not going.done():
                await asyncio.wait((going,), timeout=WATCH_SECONDS)
                if not going.done() and not await self._is_welcome():
                    self._sent_away = True
                    return {"type": "http.disconnect"}
        finally:
            going.cancel()
        return going.result()

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._started = True
        elif not message.get("more_body", False):
            self._finished = True
        await self._send(message)
