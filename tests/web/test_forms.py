"""The forms of the web UI: how they are decoded, and their maximum size."""

from __future__ import annotations

from urllib.parse import quote_plus

import pytest

from dittybag.web.browser_requests import FORM_BYTES, LONG_FORM_BYTES, Route
from dittybag.web.routes import ROUTES
from tests.cli.cli_runner import data, dittybag
from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient, BrowserResponse

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
#: The forms for texts that may be long.
LONG_FORMS = (
    "/prompts",
    "/prompts/preview",
    "/prompts/{id}/edit",
    "/prompts/{id}/result",
    "/libraries/try",
    "/resources/new",
    "/resources/edit",
    "/tasks/{id}",
)
FORMS = [route for route in ROUTES if route.method == "POST" and route.takes_form]


def escapes(size: int) -> bytes:
    return b"a=" + b"%41" * ((size - 2) // 3) + b"x" * ((size - 2) % 3)


def new_prompt(client: BrowserClient, fields: bytes) -> BrowserResponse:
    body = b"form_secret=" + client.secret.encode() + b"&" + fields
    return client.request("POST", "/p/default/prompts", body, FORM)


def test_a_sign_in_form_without_a_token_is_small(server: WebServerProcess) -> None:
    stranger = BrowserClient(server)
    assert stranger.request("POST", "/sign-in", escapes(FORM_BYTES), FORM).status == 403
    too_large = stranger.request("POST", "/sign-in", escapes(FORM_BYTES + 1), FORM)
    assert too_large.status == 413
    assert too_large.text == f"Invalid Request: the body must have at most {FORM_BYTES} bytes"


def test_the_sign_out_form_is_small(client: BrowserClient) -> None:
    assert client.request("POST", "/sign-out", escapes(FORM_BYTES + 1), FORM).status == 413


@pytest.mark.parametrize("route", FORMS, ids=lambda route: route.pattern)
def test_every_form_has_a_maximum_size(client: BrowserClient, route: Route) -> None:
    limit = LONG_FORM_BYTES if route.pattern in LONG_FORMS else FORM_BYTES
    path = "/p/default" + route.pattern.replace("{", "").replace("}", "")
    # The size is checked before the secret of the form.
    assert client.request("POST", path, escapes(limit), FORM).status == 403
    assert client.request("POST", path, escapes(limit + 1), FORM).status == 413


def test_a_title_keeps_the_line_breaks_that_a_browser_removes(
    server: WebServerProcess, client: BrowserClient
) -> None:
    for title, shown in ((" two\nlines ", "two lines"), (" \n ", "task 2")):
        task = server.call("task_create", title=title)["id"]
        page = client.get(f"/p/default/tasks/{task}").text
        assert f"<h1>{shown}</h1>" in page
        typed = {"title": title.replace("\n", ""), "priority": "5", "version": "1"}
        saved = client.post(f"/p/default/tasks/{task}", {"form_secret": client.secret, **typed})
        assert saved.status == 303
        found = server.call("task_get", task_id=task)
        assert (found["title"], found["priority"]) == (title, 5)


@pytest.mark.parametrize("character", ["\n", "é", "😀", "%", "a"], ids=ascii)
def test_the_longest_prompt_fits_into_its_form(
    server: WebServerProcess, client: BrowserClient, character: str
) -> None:
    content = character * (1024 * 1024 // len(character.encode()))
    name = f"long-{ord(character)}"
    fields = {"name": name, "title": name, "content": content.replace("\n", "\r\n")}
    response = client.post("/p/default/prompts", {"form_secret": client.secret, **fields})
    assert response.status == 303, response.text[:500]
    assert data(dittybag(server.home, "prompt", "show", name, "--json"))["content"] == content


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a=b==c", "a=b==c"),
        ("a%3Db%3d", "a=b="),
        ("a+b%2Bc%20d", "a b+c d"),
        ("a_b.c", "a_b.c"),
        ("%25%2541", "%%41"),
        ("one%0D%0Atwo%0Athree", "one\ntwo\nthree"),
        ("%C3%A9%F0%9F%98%80", "é😀"),
        (quote_plus("".join(map(chr, range(1, 0x250)))), "".join(map(chr, range(1, 0x250)))),
    ],
)
def test_escapes_are_decoded(server: WebServerProcess, client: BrowserClient, value: str, text: str) -> None:
    response = new_prompt(client, f"name=decoded&title=decoded&content={value}".encode())
    assert response.status == 303
    assert data(dittybag(server.home, "prompt", "show", "decoded", "--json"))["content"] == text
    dittybag(server.home, "prompt", "delete", "decoded")


@pytest.mark.parametrize(
    "value",
    [b"%", b"%4", b"%zz", b"%%41", b"%4%31", b"%=", b"%\n", b"a\nb", b"a\rb", b"%FF", b"\xff", b"%ED%A0%80"],
)
def test_a_malformed_form_is_refused(client: BrowserClient, value: bytes) -> None:
    response = new_prompt(client, b"name=bad&title=bad&content=" + value)
    assert response.status == 400
    assert "This form could not be read" in response.text


def test_a_form_has_at_most_1000_fields(client: BrowserClient) -> None:
    assert new_prompt(client, b"&".join([b"a=b"] * 1000)).status == 400


def test_a_long_value_is_decoded_in_parts_without_splitting_an_escape(
    server: WebServerProcess, client: BrowserClient
) -> None:
    # 1 to 3 characters before the escapes put the end of a part at every place in an escape.
    for lead in ("", "a", "ab"):
        content = lead + "é" * 100_000
        fields = f"name=parts&title=parts&content={lead}{'%C3%A9' * 100_000}"
        assert new_prompt(client, fields.encode()).status == 303
        assert data(dittybag(server.home, "prompt", "show", "parts", "--json"))["content"] == content
        dittybag(server.home, "prompt", "delete", "parts")
