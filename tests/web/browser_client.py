"""A minimal HTTP client for the web UI: cookies and forms, without JavaScript."""

from __future__ import annotations

import http.client
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from msgspec import Struct

from tests.cli.cli_runner import data, dittybag
from tests.e2e.web_server_process import WebServerProcess

_TIMEOUT_SECONDS: Final = 20


class BrowserResponse(Struct, frozen=True):
    """An HTTP response."""

    status: int
    #: By lower-case name; the last of several with the same name.
    headers: dict[str, str]
    text: str
    cookies: dict[str, str]


class HasPort(Protocol):
    """A server on this machine."""

    @property
    def port(self) -> int: ...


class BrowserClient:
    """A browser session with a server."""

    def __init__(self, server: HasPort) -> None:
        self.server = server
        self.cookies: dict[str, str] = {}
        #: The name of the cookie of its session.
        self.session = f"dittybag-session-{server.port}"

    @classmethod
    def sign_in(cls, server: WebServerProcess, token: str = "") -> BrowserClient:
        """Sign in with a link printed by the server, or with a token."""
        if token:
            return cls.sign_in_with_token(server, token)
        client = cls(server)
        response = client.open_link(server.new_link())
        assert response.status == 200, response
        assert client.session in client.cookies
        return client

    def open_link(self, link: str) -> BrowserResponse:
        """Open a sign-in link, and submit its form as its script does."""
        page = self.get("/sign-in?" + link.partition("?")[2])
        found = re.search(r'data-submit>\s*<input type="hidden" name="key" value="([^"]+)">', page.text)
        return page if found is None else self.post("/sign-in", {"key": found[1]})

    @classmethod
    def sign_in_with_token(cls, server: HasPort, token: str) -> BrowserClient:
        client = cls(server)
        response = client.post("/sign-in", {"token": token})
        assert response.status == 200, response
        assert client.session in client.cookies
        return client

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> BrowserResponse:
        """Send a request with the stored cookies, and store new ones."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=_TIMEOUT_SECONDS)
        cookie_header = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection.request(
            method, path, body, {**({"Cookie": cookie_header} if cookie_header else {}), **(headers or {})}
        )
        response = connection.getresponse()
        text = response.read().decode("utf-8", "replace")
        headers_by_name = {name.lower(): value for name, value in response.getheaders()}
        new_cookies = {}
        for name, value in response.getheaders():
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                new_cookies[key] = rest
                self.cookies[key] = rest.partition(";")[0]
        connection.close()
        return BrowserResponse(response.status, headers_by_name, text, new_cookies)

    def get(self, path: str, **headers: str) -> BrowserResponse:
        return self.request("GET", path, headers=_header_names(headers))

    def post(self, path: str, form: Mapping[str, str] | None = None, **headers: str) -> BrowserResponse:
        """Send a form; the CSRF secret is not added."""
        body = urlencode(form or {}).encode()
        content_type = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.request("POST", path, body, content_type | _header_names(headers))

    @property
    def secret(self) -> str:
        """The CSRF secret of this session."""
        return self.secret_of("/p/default")

    def secret_of(self, path: str) -> str:
        """Return the CSRF secret in a page."""
        found = re.search(r'name="form-secret" content="([0-9a-f]+)"', self.get(path).text)
        assert found is not None
        return found[1]


def toast_of(page: str) -> tuple[str, dict[str, str]]:
    """Return the text of the toast of a page, and the fields of its form."""
    found = re.search(r'<div id="toast".*?</div>', page, re.DOTALL)
    assert found is not None
    text = re.search(r"data-note>(.*?)</p>", found[0])
    fields = re.findall(r'name="(\w+)" value="([^"]*)"', found[0])
    return "" if text is None else unescape(text[1]), {name: unescape(value) for name, value in fields}


def new_token(home: Path, user: str, scope: str = "write") -> str:
    """Create a token of a user."""
    created = data(dittybag(home, "token", "create", "--user", user, "--scope", scope, "--json"))
    return str(created["token"])


def _header_names(headers: Mapping[str, Any]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
