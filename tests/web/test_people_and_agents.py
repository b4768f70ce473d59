"""The web UI tells changes by people from changes by agents, whatever names the agents give themselves."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator

import pytest

from tests.cli.cli_runner import dittybag
from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    with WebServerProcess(tmp_path_factory.mktemp("home")) as server:
        yield server


def create_task_as_client(server: WebServerProcess, client: str) -> None:
    """Create a task as an MCP client with a name, without a handshake."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
    }
    params = {"name": "task_create", "arguments": {"title": "By an agent"}, "_meta": meta}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "task_create",
    }
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    connection.request("POST", "/mcp", json.dumps(message), headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    assert response.status == 200, text


def newest_change(browser: BrowserClient) -> tuple[str, str]:
    """Return the actor of the newest change on the Activity page, and whether it is a person or an agent."""
    page = browser.get("/p/default/activity").text
    found = re.search(
        r'<span class="mark (person|agent) .*?<span class="actor">([^<]*)</span>', page, re.DOTALL
    )
    assert found is not None
    return found[2], found[1]


def test_names_do_not_make_an_agent_a_person(server: WebServerProcess) -> None:
    browser = BrowserClient.sign_in(server)
    added = browser.post("/p/default/tasks", {"text": "By hand", "form_secret": browser.secret})
    assert added.status < 400, added.text
    actor, kind = newest_change(browser)
    assert kind == "person"
    person = actor.removesuffix(" via web")
    assert actor == f"{person} via web"
    for client in ("x via web", actor, person, "cursor"):
        create_task_as_client(server, client)
        assert newest_change(browser) == (client, "agent")
    dittybag(server.home, "task", "add", "In a shell")
    assert newest_change(browser) == (person, "person")
    dittybag(server.home, "task", "add", "In a shell", variables={"DITTYBAG_ACTOR": "claude-code"})
    assert newest_change(browser) == ("claude-code", "agent")
