"""Who gets in, who may write, and what pages of somebody else can do: nothing."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dittybag.web.browser_requests import Route
from dittybag.web.pages import ROUTES
from tests.cli.running import data, dittybag
from tests.e2e.sample import fill
from tests.e2e.serving import Served
from tests.web.browsing import Browsing

PROJECT = "/p/auth-module"
#: What stands for the names in braces; whether there is such a thing does not matter here.
VALUES = {"id": "1", "seq": "1", "client": "cursor", "number": "1"}


def path_of(route: Route) -> str:
    """An address that a route answers."""
    pattern = re.sub(r"\{(\w+)\}", lambda name: VALUES.get(name[1], "x"), route.pattern)
    return PROJECT + (pattern if pattern != "/" else "")


def name_of(route: Route) -> str:
    return f"{route.method} {route.pattern}"


EVERY = pytest.mark.parametrize("route", ROUTES, ids=name_of)
EVERY_SHOWN = pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.method == "GET"], ids=name_of
)
CHANGING = [route for route in ROUTES if route.method != "GET"]
EVERY_CHANGING = pytest.mark.parametrize("route", CHANGING, ids=name_of)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    fill(home)
    return home


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Served]:
    with Served(home) as served:
        yield served


@pytest.fixture(scope="module")
def visitor(served: Served) -> Browsing:
    return Browsing.signed_in(served)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that wants tokens."""
    home = tmp_path_factory.mktemp("guarded")
    fill(home)
    dittybag(home, "user", "add", "ann")
    with Served(home, "--auth", "tokens") as served:
        yield served


def token(served: Served, user: str = "ann", scope: str = "write") -> str:
    made = data(dittybag(served.home, "token", "create", "--user", user, "--scope", scope, "--json"))
    return str(made["text"] if "text" in made else made["token"])


class TestGettingIn:
    @EVERY
    def test_nobody_sees_a_page_without_signing_in(
        self, served: Served, guarded: Served, route: Route
    ) -> None:
        for server in (served, guarded):
            answer = Browsing(server).ask(route.method, path_of(route))
            assert (answer.status, answer.headers["location"]) == (303, "/sign-in")
            assert answer.text == ""

    @EVERY
    def test_a_made_up_cookie_is_worth_nothing(self, guarded: Served, route: Route) -> None:
        stranger = Browsing(guarded)
        stranger.cookies["dittybag-session"] = "A" * 43
        assert stranger.ask(route.method, path_of(route)).headers["location"] == "/sign-in"

    def test_a_part_of_a_page_sends_the_browser_to_sign_in(self, guarded: Served) -> None:
        answer = Browsing(guarded).get(f"{PROJECT}/prompts", hx_request="true")
        assert (answer.status, answer.headers["hx-redirect"], answer.text) == (401, "/sign-in", "")

    def test_the_cookie_is_for_our_own_pages_only(self, served: Served) -> None:
        browsing = Browsing(served)
        answer = browsing.get(served.new_link().removeprefix(served.origin))
        flags = set(answer.cookies["dittybag-session"].split("; ")[1:])
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= flags

    def test_it_is_a_secure_one_where_the_page_came_over_tls(self, guarded: Served) -> None:
        browsing = Browsing(guarded)
        answer = browsing.post("/sign-in", {"token": token(guarded)}, x_forwarded_proto="https")
        assert "Secure" in answer.cookies["dittybag-session"].split("; ")

    def test_where_tokens_are_needed_no_link_lets_anybody_in(self, guarded: Served) -> None:
        assert "key=" not in guarded.log
        assert Browsing(guarded).post("/sign-in/link").status == 303
        assert "key=" not in guarded.log

    @pytest.mark.parametrize("text", ["", "dittybag_wrong", "x" * 10_000, "\x00", "Bearer x"])
    def test_a_bad_token_is_refused(self, guarded: Served, text: str) -> None:
        browsing = Browsing(guarded)
        answer = browsing.post("/sign-in", {"token": text})
        assert answer.status == 403
        assert "dittybag-session" not in browsing.cookies
        assert "not valid" in answer.text

    def test_signing_out_ends_the_session_everywhere(self, served: Served) -> None:
        browsing = Browsing.signed_in(served)
        kept = browsing.cookies["dittybag-session"]
        assert browsing.post("/sign-out", {"form_secret": browsing.secret}).status == 303
        browsing.cookies["dittybag-session"] = kept
        assert browsing.get(PROJECT).headers["location"] == "/sign-in"

    def test_a_session_outlives_the_server(self, tmp_path: Path) -> None:
        with Served(tmp_path) as first:
            browsing = Browsing.signed_in(first)
        with Served(tmp_path) as second:
            browsing.served = second
            assert browsing.get("/p/default").status == 200

    def test_a_session_is_not_in_the_database_as_it_is(self, served: Served, visitor: Browsing) -> None:
        kept = b"".join(file.read_bytes() for file in served.home.iterdir() if ".db" in file.name)
        assert visitor.cookies["dittybag-session"].encode() not in kept

    def test_a_revoked_token_ends_its_sessions_within_five_seconds(self, guarded: Served) -> None:
        browsing = Browsing.signed_in(guarded, token(guarded))
        assert browsing.get(PROJECT).status == 200
        listed = data(dittybag(guarded.home, "token", "list", "--json"))["tokens"]
        stream = listened(browsing, f"{PROJECT}/live")
        dittybag(guarded.home, "token", "revoke", *(str(item["id"]) for item in listed))
        begun = time.monotonic()
        heard = b""
        while not heard.endswith(b"0\r\n\r\n"):
            heard += stream.recv(4096)
            assert time.monotonic() - begun < 5
        stream.close()
        while (answer := browsing.get(PROJECT)).status != 303:
            assert answer.status == 404
            assert time.monotonic() - begun < 5
        assert answer.headers["location"] == "/sign-in"


class TestForeignPages:
    @EVERY_CHANGING
    def test_nothing_is_done_without_the_secret_of_the_form(self, visitor: Browsing, route: Route) -> None:
        for form in ({}, {"form_secret": ""}, {"form_secret": "0" * 64}):
            answer = visitor.ask(
                route.method,
                path_of(route),
                b"&".join(f"{name}={value}".encode() for name, value in form.items()),
                {"Content-Type": "application/x-www-form-urlencoded"},
            )
            assert answer.status == 403
            assert "This form is out of date" in answer.text

    @EVERY_CHANGING
    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://127.0.0.1:1"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ],
        ids=lambda headers: " ".join(next(iter(headers.items()))),
    )
    def test_nothing_is_done_for_a_page_of_somebody_else(
        self, visitor: Browsing, route: Route, headers: dict[str, str]
    ) -> None:
        secret = {"X-Form-Secret": visitor.secret}
        answer = visitor.ask(route.method, path_of(route), b"", secret | headers)
        assert answer.status == 403

    @EVERY
    def test_no_page_is_for_another_name_of_this_machine(self, visitor: Browsing, route: Route) -> None:
        answer = visitor.ask(route.method, path_of(route), headers={"Host": "evil.example"})
        assert answer.status == 421

    def test_signing_in_and_out_is_for_our_own_pages(self, served: Served, visitor: Browsing) -> None:
        foreign = "cross-site"
        assert Browsing(served).post("/sign-in", {"token": "x"}, sec_fetch_site=foreign).status == 403
        assert Browsing(served).post("/sign-in/link", sec_fetch_site=foreign).status == 403
        out = visitor.post("/sign-out", {"form_secret": visitor.secret}, sec_fetch_site=foreign)
        assert out.status == 403
        assert visitor.post("/sign-out", {}).status == 403
        assert visitor.get("/p/default").status == 200

    @EVERY_SHOWN
    def test_nothing_says_that_another_origin_may_read(self, visitor: Browsing, route: Route) -> None:
        answer = visitor.get(path_of(route), origin=f"http://127.0.0.1:{visitor.served.port}")
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


@pytest.fixture(scope="module")
def read_only(home: Path) -> Iterator[Browsing]:
    with Served(home, "--read-only") as served:
        yield Browsing.signed_in(served)


@pytest.fixture(scope="module")
def reader(guarded: Served) -> Browsing:
    return Browsing.signed_in(guarded, token(guarded, scope="read"))


@pytest.fixture(scope="module")
def outsider(guarded: Served) -> Browsing:
    dittybag(guarded.home, "user", "add", "bea")
    dittybag(guarded.home, "project", "create", "private")
    dittybag(guarded.home, "project", "share", "private", "ann")
    browsing = Browsing.signed_in(guarded, token(guarded, "bea"))
    browsing.cookies["form secret"] = browsing.secret
    return browsing


class TestPermissions:
    @EVERY_CHANGING
    def test_a_server_that_only_shows_things_changes_nothing(self, read_only: Browsing, route: Route) -> None:
        answer = read_only.ask(route.method, path_of(route), b"", {"X-Form-Secret": read_only.secret})
        assert answer.status == 403
        assert "--read-only" in answer.text

    @EVERY_CHANGING
    def test_a_token_that_only_reads_changes_nothing(
        self, guarded: Served, reader: Browsing, route: Route
    ) -> None:
        before = self._log(guarded)
        answer = reader.ask(route.method, path_of(route), b"", {"X-Form-Secret": reader.secret})
        assert answer.status in (200, 403, 404, 409, 422)
        assert self._log(guarded) == before

    def _log(self, served: Served) -> str:
        return dittybag(served.home, "history", "--limit", "5", "--json").stdout

    @EVERY
    def test_a_foreign_project_looks_like_one_that_is_not_there(
        self, outsider: Browsing, route: Route
    ) -> None:
        foreign = path_of(route).replace(PROJECT, "/p/private")
        missing = path_of(route).replace(PROJECT, "/p/missing")
        secret = {"X-Form-Secret": outsider.cookies["form secret"]}
        first, second = (outsider.ask(route.method, path, b"", secret) for path in (foreign, missing))
        assert first.status == second.status == 404
        assert first.text.replace("private", "missing") == second.text


def listened(browsing: Browsing, path: str) -> socket.socket:
    """A stream of news that has begun."""
    stream = socket.create_connection(("127.0.0.1", browsing.served.port), timeout=10)
    held = f"Cookie: dittybag-session={browsing.cookies['dittybag-session']}\r\n"
    stream.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{held}\r\n".encode())
    heard = b""
    while b"retry:" not in heard:
        heard += stream.recv(4096)
    assert b" 200 " in heard
    return stream


def test_news_of_a_project_are_for_those_who_see_it(tmp_path: Path) -> None:
    for user in ("ann", "bea"):
        dittybag(tmp_path, "user", "add", user)
    dittybag(tmp_path, "project", "share", "default", "ann")
    with Served(tmp_path, "--auth", "tokens") as served:
        hers, foreign = token(served, "ann"), token(served, "bea")
        member = listened(Browsing.signed_in(served, hers), "/p/default/live")
        outsider = listened(Browsing.signed_in(served, foreign), "/p/default/live")
        served.call("create_prompt", token=hers, name="one", content="Words")
        assert b"data: prompt" in member.recv(4096)
        # The next that both hear of is the task: nothing came before it.
        served.call("task_create", token=foreign, title="Mine")
        assert b"data: task" in outsider.recv(4096)
        member.close()
        outsider.close()


def test_news_end_for_those_who_see_a_project_no_more(guarded: Served) -> None:
    for command in (["create", "shared"], ["share", "shared", "ann"], ["share", "shared", "cleo"]):
        if command[-1] == "cleo":
            dittybag(guarded.home, "user", "add", "cleo")
        dittybag(guarded.home, "project", *command)
    stream = listened(Browsing.signed_in(guarded, token(guarded, "cleo")), "/p/shared/live")
    dittybag(guarded.home, "project", "unshare", "shared", "cleo")
    begun = time.monotonic()
    heard = b""
    while not heard.endswith(b"0\r\n\r\n"):
        heard += stream.recv(4096)
        assert time.monotonic() - begun < 5
    stream.close()


def test_stored_text_is_never_markup(visitor: Browsing) -> None:
    """What a template writes is escaped, whatever it is."""
    answer = visitor.get("/p/%3Cscript%3Ealert(1)%3C%2Fscript%3E/prompts")
    assert answer.status == 404
    assert "<script>alert" not in answer.text
