"""A browser without eyes: requests with cookies and forms, exactly as one wants them."""

from __future__ import annotations

import http.client
import re
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from msgspec import Struct

from tests.e2e.serving import Served

_PATIENCE_SECONDS: Final = 20


class Response(Struct, frozen=True):
    """An answer."""

    status: int
    #: By their names in lower case; of several with one name, the last.
    headers: dict[str, str]
    text: str
    cookies: dict[str, str]


class Listening(Protocol):
    """A server of this machine."""

    @property
    def port(self) -> int: ...


class Browsing:
    """Somebody at the pages of a server."""

    def __init__(self, served: Listening) -> None:
        self.served = served
        self.cookies: dict[str, str] = {}

    @classmethod
    def signed_in(cls, served: Served, token: str = "") -> Browsing:
        """With a link of the server, or with a token."""
        if token:
            return cls.with_token(served, token)
        browsing = cls(served)
        answer = browsing.get(served.new_link().removeprefix(served.origin))
        assert answer.status == 200, answer
        assert "dittybag-session" in browsing.cookies
        return browsing

    @classmethod
    def with_token(cls, served: Listening, token: str) -> Browsing:
        browsing = cls(served)
        answer = browsing.post("/sign-in", {"token": token})
        assert answer.status == 200, answer
        assert "dittybag-session" in browsing.cookies
        return browsing

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send a request as it is said, with the cookies that were set."""
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=_PATIENCE_SECONDS)
        held = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection.request(method, path, body, {**({"Cookie": held} if held else {}), **(headers or {})})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        found = {name.lower(): value for name, value in answer.getheaders()}
        set_now = {}
        for name, value in answer.getheaders():
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                set_now[key] = rest
                self.cookies[key] = rest.partition(";")[0]
        connection.close()
        return Response(answer.status, found, text, set_now)

    def get(self, path: str, **headers: str) -> Response:
        return self.ask("GET", path, headers=_named(headers))

    def post(self, path: str, form: Mapping[str, str] | None = None, **headers: str) -> Response:
        """Send a form, without the secret unless it is in there."""
        body = urlencode(form or {}).encode()
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.ask("POST", path, body, kind | _named(headers))

    @property
    def secret(self) -> str:
        """What forms of this visitor's pages carry."""
        found = re.search(r'name="form-secret" content="([0-9a-f]+)"', self.get("/p/default").text)
        assert found is not None
        return found[1]


def _named(headers: Mapping[str, Any]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
