"""Authentication, permissions and cross-origin protection of the web UI, for every route."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dittybag.web.browser_requests import Route
from dittybag.web.routes import ROUTES
from dittybag.web.sse import MAX_STREAMS_PER_USER
from tests.cli.cli_runner import data, dittybag
from tests.e2e.sample_home import fill_home
from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient, new_token

PROJECT = "/p/auth-module"
#: Values for path parameters; the entities need not exist.
PATH_PARAMETERS = {"id": "1", "seq": "1", "client": "cursor", "number": "1"}


def path_of(route: Route) -> str:
    """Return a path that the route matches."""
    pattern = re.sub(r"\{(\w+)\}", lambda name: PATH_PARAMETERS.get(name[1], "x"), route.pattern)
    return PROJECT + (pattern if pattern != "/" else "")


def route_name(route: Route) -> str:
    return f"{route.method} {route.pattern}"


EVERY_ROUTE = pytest.mark.parametrize("route", ROUTES, ids=route_name)
EVERY_GET_ROUTE = pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.method == "GET"], ids=route_name
)
WRITE_ROUTES = [route for route in ROUTES if route.method != "GET"]
EVERY_WRITE_ROUTE = pytest.mark.parametrize("route", WRITE_ROUTES, ids=route_name)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    fill_home(home)
    return home


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[WebServerProcess]:
    with WebServerProcess(home) as server:
        yield server


@pytest.fixture(scope="module")
def token_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    """A server that requires tokens."""
    home = tmp_path_factory.mktemp("guarded")
    fill_home(home)
    dittybag(home, "user", "add", "ann")
    with WebServerProcess(home, "--auth", "tokens") as server:
        yield server


class TestSigningIn:
    @EVERY_ROUTE
    @pytest.mark.parametrize("cookie", ["", "A" * 43], ids=["no cookie", "unknown cookie"])
    def test_no_page_is_shown_without_signing_in(
        self, server: WebServerProcess, token_server: WebServerProcess, route: Route, cookie: str
    ) -> None:
        for each in (server, token_server):
            stranger = BrowserClient(each)
            if cookie:
                stranger.cookies[stranger.session] = cookie
            response = stranger.request(route.method, path_of(route))
            assert (response.status, response.headers["location"]) == (303, "/sign-in")
            assert response.text == ""

    def test_the_icon_is_shown_without_signing_in(self, token_server: WebServerProcess) -> None:
        client = BrowserClient(token_server)
        icon, linked = client.get("/favicon.ico"), client.get("/static/icon.svg")
        assert icon.status == linked.status == 200
        assert icon.text == linked.text
        assert linked.headers["content-type"] == "image/svg+xml"

    def test_a_fragment_request_redirects_the_browser_to_sign_in(
        self, token_server: WebServerProcess
    ) -> None:
        response = BrowserClient(token_server).get(f"{PROJECT}/prompts", hx_request="true")
        assert (response.status, response.headers["hx-redirect"], response.text) == (401, "/sign-in", "")

    def test_the_cookie_is_http_only_and_same_site(self, server: WebServerProcess) -> None:
        client = BrowserClient(server)
        response = client.open_link(server.new_link())
        flags = set(response.cookies[client.session].split("; ")[1:])
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= flags

    def test_the_cookie_is_secure_over_tls(self, token_server: WebServerProcess) -> None:
        client = BrowserClient(token_server)
        response = client.post(
            "/sign-in", {"token": new_token(token_server.home, "ann")}, x_forwarded_proto="https"
        )
        assert "Secure" in response.cookies[client.session].split("; ")

    def test_no_sign_in_link_is_printed_when_tokens_are_required(
        self, token_server: WebServerProcess
    ) -> None:
        assert "key=" not in token_server.log
        assert BrowserClient(token_server).post("/sign-in/link").status == 303
        assert "key=" not in token_server.log

    @pytest.mark.parametrize(
        ("method", "headers"),
        [
            ("HEAD", {}),
            ("GET", {}),
            ("GET", {"Sec-Purpose": "prefetch"}),
            ("GET", {"Sec-Purpose": "prefetch;prerender"}),
            ("GET", {"Purpose": "preview"}),
        ],
        ids=str,
    )
    def test_a_link_that_is_only_fetched_still_works(
        self, server: WebServerProcess, method: str, headers: dict[str, str]
    ) -> None:
        link = server.new_link()
        client = BrowserClient(server)
        for _ in range(3):
            fetched = client.request(method, link.removeprefix(server.origin), headers=headers)
            assert fetched.status == 200
            assert client.cookies == {}
        assert client.open_link(link).status == 200
        assert client.get(PROJECT).status == 200

    def test_a_link_works_once(self, server: WebServerProcess) -> None:
        link = server.new_link()
        first, second = BrowserClient(server), BrowserClient(server)
        page = second.get(link.removeprefix(server.origin))
        assert page.status == 200
        assert first.open_link(link).status == 200
        for response in (
            second.post("/sign-in", {"key": link.partition("key=")[2]}),
            second.get(link.removeprefix(server.origin)),
        ):
            assert response.status == 403
            assert "This link has expired or was already used" in response.text
        assert second.cookies == {}

    def test_requests_for_a_new_link_do_not_flood_the_terminal(self, tmp_path: Path) -> None:
        with WebServerProcess(tmp_path) as server:
            stranger = BrowserClient(server)
            for _ in range(300):
                response = stranger.post("/sign-in/link")
                assert (response.status, response.headers["location"]) == (303, "/sign-in")
            newest = server.wait_for(r"Web UI: .*\n(?:.*\n)*?Web UI: (\S+)")
            # The link of the start and the requested one both work.
            assert stranger.open_link(newest).status == 200
            assert BrowserClient(server).open_link(server.link).status == 200
            # A used link can be replaced.
            assert stranger.post("/sign-in/link").status == 303
            server.wait_for(r"(?:Web UI: .*\n(?:.*\n)*?){2}(Web UI: \S+)")
        assert server.log.count("Web UI: ") == 3

    @pytest.mark.parametrize("text", ["", "dittybag_wrong", "x" * 10_000, "\x00", "Bearer x"])
    def test_a_bad_token_is_refused(self, token_server: WebServerProcess, text: str) -> None:
        client = BrowserClient(token_server)
        response = client.post("/sign-in", {"token": text})
        assert response.status == 403
        assert client.session not in client.cookies
        assert "not valid" in response.text

    def test_signing_out_ends_the_session(self, server: WebServerProcess) -> None:
        client = BrowserClient.sign_in(server)
        stored = client.cookies[client.session]
        assert client.post("/sign-out", {"form_secret": client.secret}).status == 303
        client.cookies[client.session] = stored
        assert client.get(PROJECT).headers["location"] == "/sign-in"

    def test_a_session_survives_a_server_restart(self, tmp_path: Path) -> None:
        with WebServerProcess(tmp_path) as first:
            secret = (client := BrowserClient.sign_in(first)).cookies[client.session]
        with WebServerProcess(tmp_path) as second:
            client = BrowserClient(second)
            client.cookies[client.session] = secret
            assert client.get("/p/default").status == 200

    def test_two_servers_on_one_machine_do_not_sign_each_other_out(self, tmp_path: Path) -> None:
        with WebServerProcess(tmp_path / "a") as first, WebServerProcess(tmp_path / "b") as second:
            cookies: dict[str, str] = {}
            for server in (first, second):
                client = BrowserClient(server)
                client.cookies = cookies
                client.open_link(server.new_link())
            for server in (first, second):
                client = BrowserClient(server)
                client.cookies = cookies
                assert client.get("/p/default").status == 200

    def test_the_database_does_not_contain_the_session_cookie(
        self, server: WebServerProcess, client: BrowserClient
    ) -> None:
        stored = b"".join(file.read_bytes() for file in server.home.iterdir() if ".db" in file.name)
        assert client.cookies[client.session].encode() not in stored

    def test_a_revoked_token_ends_its_sessions_within_five_seconds(
        self, token_server: WebServerProcess
    ) -> None:
        client = BrowserClient.sign_in(token_server, new_token(token_server.home, "ann"))
        assert client.get(PROJECT).status == 200
        tokens = data(dittybag(token_server.home, "token", "list", "--json"))["tokens"]
        stream = open_event_stream(client, f"{PROJECT}/live")
        dittybag(token_server.home, "token", "revoke", *(str(item["id"]) for item in tokens))
        started = time.monotonic()
        wait_for_end(stream)
        while (response := client.get(PROJECT)).status != 303:
            assert response.status == 404
            assert time.monotonic() - started < 5
        assert response.headers["location"] == "/sign-in"


class TestCrossOriginRequests:
    @EVERY_WRITE_ROUTE
    def test_a_write_without_the_csrf_secret_is_rejected(self, client: BrowserClient, route: Route) -> None:
        for form in ({}, {"form_secret": ""}, {"form_secret": "0" * 64}):
            response = client.request(
                route.method,
                path_of(route),
                b"&".join(f"{name}={value}".encode() for name, value in form.items()),
                {"Content-Type": "application/x-www-form-urlencoded"},
            )
            assert response.status == 403
            assert "This form is out of date" in response.text

    @EVERY_WRITE_ROUTE
    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://127.0.0.1:1"},
            {"Origin": "https://127.0.0.1"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ],
        ids=lambda headers: " ".join(next(iter(headers.items()))),
    )
    def test_a_write_from_another_origin_is_rejected(
        self, client: BrowserClient, route: Route, headers: dict[str, str]
    ) -> None:
        secret = {"X-Form-Secret": client.secret}
        response = client.request(route.method, path_of(route), b"", secret | headers)
        assert response.status == 403

    def test_another_scheme_is_another_origin(
        self, server: WebServerProcess, token_server: WebServerProcess
    ) -> None:
        """Behind a proxy with TLS the scheme is https."""
        text = new_token(token_server.home, "ann")
        for proto, scheme, status in (
            ("", "http", 200),
            ("", "https", 403),
            ("https", "https", 200),
            ("https", "http", 403),
        ):
            origin = f"{scheme}://127.0.0.1:{token_server.port}"
            headers = {"origin": origin} | ({"x_forwarded_proto": proto} if proto else {})
            response = BrowserClient(token_server).post("/sign-in", {"token": text}, **headers)
            assert response.status == status, headers
            headers["origin"] = f"{scheme}://127.0.0.1:{server.port}"
            link = BrowserClient(server).post("/sign-in/link", {}, **headers)
            assert link.status == (303 if status == 200 else 403)

    @EVERY_ROUTE
    def test_another_host_name_is_rejected(self, client: BrowserClient, route: Route) -> None:
        response = client.request(route.method, path_of(route), headers={"Host": "evil.example"})
        assert response.status == 421

    def test_signing_in_and_out_from_another_origin_is_rejected(
        self, server: WebServerProcess, client: BrowserClient
    ) -> None:
        foreign = "cross-site"
        assert BrowserClient(server).post("/sign-in", {"token": "x"}, sec_fetch_site=foreign).status == 403
        assert BrowserClient(server).post("/sign-in/link", sec_fetch_site=foreign).status == 403
        out = client.post("/sign-out", {"form_secret": client.secret}, sec_fetch_site=foreign)
        assert out.status == 403
        assert client.post("/sign-out", {}).status == 403
        assert client.get("/p/default").status == 200

    def test_the_theme_is_set_by_own_forms_and_leads_back_to_own_pages(
        self, server: WebServerProcess
    ) -> None:
        client = BrowserClient.sign_in(server)
        form = {"form_secret": client.secret, "theme": "dark"}
        assert client.post("/appearance", {"theme": "dark"}).status == 403
        assert client.post("/appearance", form, sec_fetch_site="cross-site").status == 403
        refused = client.post("/appearance", {**form, "theme": '"><script>'})
        assert refused.status == 422
        assert "theme must be one of auto, light, dark" in refused.text
        assert client.get("/appearance").status == 405
        assert 'data-theme="auto"' in client.get(PROJECT).text

        origin = f"http://127.0.0.1:{server.port}"
        for referer, location in [
            (f"{origin}{PROJECT}/tasks?view=list", f"{PROJECT}/tasks?view=list"),
            ("https://evil.example/p/x", "/"),
            (f"{origin}.evil.example/", "/"),
            (f"{origin}//evil.example/", "/"),
            ("", "/"),
        ]:
            saved = client.post("/appearance", form, referer=referer)
            assert (saved.status, saved.headers["location"]) == (303, location)
        assert client.post("/appearance", form, hx_request="true").status == 204
        page = client.get(PROJECT).text
        assert 'data-theme="dark"' in page
        assert '<meta name="color-scheme" content="dark">' in page
        reset = client.post("/appearance", {**form, "theme": "auto"})
        assert "Max-Age=0" in reset.cookies["theme"]
        client.cookies["theme"] = "purple"
        assert 'data-theme="auto"' in client.get(PROJECT).text

    @EVERY_GET_ROUTE
    def test_the_headers_forbid_reading_from_another_origin(
        self, client: BrowserClient, route: Route
    ) -> None:
        response = client.get(path_of(route), origin=f"http://127.0.0.1:{client.server.port}")
        assert not [name for name in response.headers if name.startswith("access-control-")]
        assert response.headers["cross-origin-resource-policy"] == "same-origin"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["x-frame-options"] == "DENY"
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


@pytest.fixture(scope="module")
def read_only(home: Path) -> Iterator[BrowserClient]:
    with WebServerProcess(home, "--read-only") as server:
        yield BrowserClient.sign_in(server)


@pytest.fixture(scope="module")
def reader(token_server: WebServerProcess) -> BrowserClient:
    return BrowserClient.sign_in(token_server, new_token(token_server.home, "ann", scope="read"))


@pytest.fixture(scope="module")
def outsider(token_server: WebServerProcess) -> BrowserClient:
    dittybag(token_server.home, "user", "add", "bea")
    dittybag(token_server.home, "project", "create", "private")
    dittybag(token_server.home, "project", "share", "private", "ann")
    client = BrowserClient.sign_in(token_server, new_token(token_server.home, "bea"))
    client.cookies["form secret"] = client.secret
    return client


class TestPermissions:
    @EVERY_WRITE_ROUTE
    def test_a_read_only_server_rejects_every_write(self, read_only: BrowserClient, route: Route) -> None:
        response = read_only.request(route.method, path_of(route), b"", {"X-Form-Secret": read_only.secret})
        assert response.status == 403
        assert "--read-only" in response.text

    @EVERY_WRITE_ROUTE
    def test_a_read_token_changes_nothing(
        self, token_server: WebServerProcess, reader: BrowserClient, route: Route
    ) -> None:
        before = self._latest_changes(token_server)
        response = reader.request(route.method, path_of(route), b"", {"X-Form-Secret": reader.secret})
        assert response.status in (200, 403, 404, 409, 422)
        assert self._latest_changes(token_server) == before

    def _latest_changes(self, server: WebServerProcess) -> str:
        return dittybag(server.home, "history", "--limit", "5", "--json").stdout

    @EVERY_ROUTE
    def test_a_project_without_access_looks_like_a_missing_one(
        self, outsider: BrowserClient, route: Route
    ) -> None:
        foreign = path_of(route).replace(PROJECT, "/p/private")
        missing = path_of(route).replace(PROJECT, "/p/missing")
        secret = {"X-Form-Secret": outsider.cookies["form secret"]}
        first, second = (outsider.request(route.method, path, b"", secret) for path in (foreign, missing))
        assert first.status == second.status == 404
        assert first.text.replace("private", "missing") == second.text


def open_event_stream(client: BrowserClient, path: str) -> socket.socket:
    """Open an event stream and wait until it has started."""
    stream = socket.create_connection(("127.0.0.1", client.server.port), timeout=10)
    cookie_header = f"Cookie: {client.session}={client.cookies[client.session]}\r\n"
    stream.sendall(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{client.server.port}\r\n{cookie_header}\r\n".encode()
    )
    received = b""
    while b"retry:" not in received:
        received += stream.recv(4096)
    assert b" 200 " in received
    return stream


def wait_for_end(stream: socket.socket) -> None:
    """Wait until the server ends an event stream, which it has to do within five seconds."""
    started = time.monotonic()
    received = b""
    while not received.endswith(b"0\r\n\r\n"):
        received += stream.recv(4096)
        assert time.monotonic() - started < 5
    stream.close()


def test_the_streams_of_a_user_have_only_what_they_can_see_and_leave_room_for_others(tmp_path: Path) -> None:
    for user in ("ann", "bea"):
        dittybag(tmp_path, "user", "add", user)
    dittybag(tmp_path, "project", "share", "default", "ann")
    with WebServerProcess(tmp_path, "--auth", "tokens") as server:
        tokens = {user: new_token(tmp_path, user) for user in ("ann", "bea")}
        ann, bea = (BrowserClient.sign_in(server, token) for token in tokens.values())
        streams = [open_event_stream(bea, "/p/default/live") for _ in range(MAX_STREAMS_PER_USER)]
        refused = bea.get("/p/default/live")
        assert (refused.status, refused.text) == (503, "Too many pages are open")
        streams.append(open_event_stream(ann, "/p/default/live"))
        server.call("create_prompt", token=tokens["ann"], name="one", content="Words")
        assert b"data: prompt" in streams[-1].recv(4096)
        # The task is the first event: the prompt was not sent.
        server.call("task_create", token=tokens["bea"], title="Mine")
        assert b"data: task" in streams[0].recv(4096)
        for stream in streams:
            stream.close()


def test_an_event_stream_ends_when_access_to_the_project_ends(token_server: WebServerProcess) -> None:
    for command in (["create", "shared"], ["share", "shared", "ann"], ["share", "shared", "cleo"]):
        if command[-1] == "cleo":
            dittybag(token_server.home, "user", "add", "cleo")
        dittybag(token_server.home, "project", *command)
    stream = open_event_stream(
        BrowserClient.sign_in(token_server, new_token(token_server.home, "cleo")), "/p/shared/live"
    )
    dittybag(token_server.home, "project", "unshare", "shared", "cleo")
    wait_for_end(stream)


def test_text_is_escaped_in_error_pages(client: BrowserClient) -> None:
    """Templates escape every value."""
    response = client.get("/p/%3Cscript%3Ealert(1)%3C%2Fscript%3E/prompts")
    assert response.status == 404
    assert "<script>alert" not in response.text
