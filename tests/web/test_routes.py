"""The routes of the web UI, and the sections of its navigation."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from dittybag.web.routes import ROUTES
from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient


def test_routes_are_few_and_different() -> None:
    routes = {(route.method, route.pattern) for route in ROUTES}
    assert len(routes) == len(ROUTES) <= 92


def test_the_navigation_has_six_sections_and_two_at_its_foot(tmp_path: Path) -> None:
    with WebServerProcess(tmp_path) as server:
        client = BrowserClient.sign_in(server)
        side = (
            unescape(client.get("/p/default").text)
            .partition('<nav class="side"')[2]
            .partition("only-small")[0]
        )
        sections, _, foot = side.partition("foot")
        links = [re.findall(r'<a href="([^"]+)"', part) for part in (sections, foot)]
        names = ("", "/prompts", "/resources", "/tasks", "/context", "/activity")
        assert links[0] == [f"/p/default{name}" for name in names]
        assert links[1] == ["/p/default/connect", "/p/default/settings"]
        assert {client.get(link).status for link in (*links[0], *links[1])} == {200}
