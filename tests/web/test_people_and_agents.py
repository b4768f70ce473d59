"""The web UI tells changes by people from changes by agents, whatever names the agents give themselves."""

from __future__ import annotations

import re

from tests.cli.cli_runner import dittybag
from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient


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
        server.call("task_create", client, title="By an agent")
        assert newest_change(browser) == (client, "agent")
    dittybag(server.home, "task", "add", "In a shell")
    assert newest_change(browser) == (person, "person")
    dittybag(server.home, "task", "add", "In a shell", variables={"DITTYBAG_ACTOR": "claude-code"})
    assert newest_change(browser) == ("claude-code", "agent")
