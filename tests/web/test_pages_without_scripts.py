"""Undo and the page of a prompt in a browser without JavaScript."""

from __future__ import annotations

from html import unescape

import pytest

from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient, toast_of

PROMPTS = "/p/default/prompts"


def test_a_deletion_is_undone_and_redone(server: WebServerProcess, client: BrowserClient) -> None:
    identity = server.call("create_prompt", name="doomed", content="Text <b>")["id"]
    secret = {"form_secret": client.secret}
    gone = client.post(f"{PROMPTS}/{identity}/delete", secret)
    assert (gone.status, gone.headers["location"]) == (303, PROMPTS)
    text, fields = toast_of(client.get(PROMPTS).text)
    assert text == "Deleted “doomed”"
    assert fields["back"] == PROMPTS
    # It is offered once.
    assert toast_of(client.get(PROMPTS).text) == ("", {})

    back = client.post("/p/default/undo", fields)
    assert (back.status, back.headers["location"]) == (303, PROMPTS)
    page = client.get(PROMPTS).text
    text, fields = toast_of(page)
    assert text == "Restored “doomed”"
    assert fields["redo"] == "1"
    assert ">Redo " in page
    elsewhere = client.post("/p/default/undo", {**fields, "back": "//example.org/p/default"})
    assert elsewhere.headers["location"] == "/p/default"
    assert toast_of(client.get("/p/default").text)[0] == "Deleted “doomed”"
    # The first undo was overtaken by another change.
    late = client.post("/p/default/undo", fields)
    assert late.headers["location"] == f"/p/default/activity/{fields['seq']}"
    assert client.post("/p/default/undo", {**secret, "seq": "999999"}).status == 404
    assert client.post("/p/default/undo", {"seq": fields["seq"]}).status == 403


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("view=list&status=open", "status must be one of todo, doing, review, done, dropped, not 'open'"),
        ("view=list&sort=oldest", "sort must be one of priority, due, newest, not 'oldest'"),
        ("priority=9", "priority must be one of 5, 4, 3, 2, 1, not '9'"),
        ("due=soon", "due must be one of overdue, today, week, not 'soon'"),
    ],
)
def test_an_unknown_filter_in_the_address_is_an_error(
    client: BrowserClient, query: str, problem: str
) -> None:
    page = client.get(f"/p/default/tasks?{query}")
    assert (page.status, problem in unescape(page.text)) == (422, True)


def test_a_prompt_is_rendered_with_the_values_of_the_address(
    server: WebServerProcess, client: BrowserClient
) -> None:
    arguments = [{"name": "who", "required": True}]
    made = server.call("create_prompt", name="greet", content="Hello {{ who }}", arguments=arguments)
    identity = made["id"]
    page = unescape(client.get(f"{PROMPTS}/{identity}?value-who=Ann+%26+Bob").text)
    assert "\nHello Ann & Bob</pre>" in page
    assert "dittybag prompt render greet who='Ann & Bob'" in page
