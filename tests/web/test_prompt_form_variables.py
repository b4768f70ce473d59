"""Variables in the content of a prompt that is saved in the web UI."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.cli.cli_runner import data, dittybag
from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient, BrowserResponse

PROMPTS = "/p/default/prompts"


def save(client: BrowserClient, path: str, **fields: str) -> BrowserResponse:
    return client.post(path, {"form_secret": client.secret, **fields})


def note(response: BrowserResponse) -> str:
    assert response.status == 303, response
    return unquote(response.cookies["dittybag-note"].partition(";")[0])


def stored(home: Path, name: str) -> dict[str, Any]:
    shown: dict[str, Any] = data(dittybag(home, "prompt", "show", name, "--json"))
    return shown


def test_variables_become_arguments_and_follow_the_content(
    server: WebServerProcess, client: BrowserClient
) -> None:
    response = save(client, PROMPTS, title="greet", content="Hello {{ name }}")
    assert note(response) == "Prompt saved; the variable {{ name }} is now an argument"
    prompt = stored(server.home, "greet")
    assert [(item["name"], item["required"]) for item in prompt["arguments"]] == [("name", True)]
    edit = f"{PROMPTS}/{prompt['id']}/edit"
    row = {"argument-0-name": "name", "argument-0-required": "on"}
    fields = {"title": "greet", "name": "greet", **row}
    response = save(client, edit, version="1", content="Hello {{ friend }}", **fields)
    assert note(response) == "Changes saved; the variable {{ friend }} is now an argument"
    assert [item["name"] for item in stored(server.home, "greet")["arguments"]] == ["friend"]
    # A declared argument stays.
    row = {"argument-0-name": "friend", "argument-0-description": "Who it is"}
    response = save(client, edit, version="2", title="greet", name="greet", content="Hi {{ you }}", **row)
    assert note(response) == "Changes saved"
    assert [item["name"] for item in stored(server.home, "greet")["arguments"]] == ["friend"]


def test_variables_are_kept_as_text_on_request(server: WebServerProcess, client: BrowserClient) -> None:
    response = save(client, PROMPTS, title="kept", content="Hello {{ name }}", verbatim="on")
    assert note(response) == "Prompt saved"
    prompt = stored(server.home, "kept")
    assert prompt["arguments"] == []
    edit = f"{PROMPTS}/{prompt['id']}/edit"
    assert 'name="verbatim" checked' in client.get(edit).text
    fields = {"title": "kept", "name": "kept", "content": "Hi {{ name }}"}
    assert note(save(client, edit, version="1", verbatim="on", **fields)) == "Changes saved"
    assert stored(server.home, "kept")["arguments"] == []
    response = save(client, edit, version="2", **fields)
    assert note(response) == "Changes saved; the variable {{ name }} is now an argument"
    assert 'name="verbatim" checked' not in client.get(edit).text


def test_the_preview_names_the_variables(client: BrowserClient) -> None:
    found = save(client, f"{PROMPTS}/preview", content="Hello {{ name }}").text
    assert "When you save, these variables become arguments: <code>name</code>" in found
    assert "become" not in save(client, f"{PROMPTS}/preview", content="Hello {{ name }}", verbatim="on").text
