"""Actions on several entities at once, as a browser without scripts sends them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

from tests.cli.cli_runner import data, dittybag
from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient, BrowserResponse

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
LIST = "/p/default/prompts"


def test_forms_change_all_selected_entities_or_none(tmp_path: Path) -> None:
    with WebServerProcess(tmp_path) as server:
        ids = [server.call("create_prompt", name=f"p{number}", content="Text")["id"] for number in range(3)]
        task = server.call("task_create", title="Lonely")["id"]
        client = BrowserClient.sign_in(server)
        secret = client.secret

        def send(kind: str, selected: list[str], action: str, **fields: str) -> BrowserResponse:
            pairs = [("form_secret", secret), ("action", action), *fields.items()]
            body = urlencode([*pairs, *(("id", item) for item in selected)]).encode()
            return client.request("POST", f"/p/default/{kind}/bulk", body, FORM)

        def stored() -> int:
            return len(data(dittybag(tmp_path, "prompt", "list", "--json"))["prompts"])

        for selected, action, message in (
            ([], "delete", "Nothing is selected"),
            ([f"{ids[0]}{number}" for number in range(501)], "delete", "select at most 500"),
            (ids, "burn", "action must be one of tag, untag, move, delete, export"),
            (ids, "tag", "Tag is empty"),
            (ids, "move", "Project is empty"),
        ):
            refused = send("prompts", selected, action)
            assert (refused.status, message in refused.text) == (422, True), refused.text
        assert send("prompts", [*ids, "missing"], "delete").status == 404
        assert send("tasks", ["0", str(task)], "complete").status == 404
        assert stored() == 3
        # The list offers undo after a redirect, which never leads to another site.
        done = send("prompts", ids, "delete", back="https://example.com/")
        assert (done.status, done.headers["location"], stored()) == (303, LIST, 0)
        page = client.get(LIST)
        assert "3 prompts deleted" in page.text
        seq = page.text.partition('name="seq" value="')[2].partition('"')[0]
        assert client.post("/p/default/undo", {"form_secret": secret, "seq": seq}).status == 303
        assert stored() == 3
        assert send("tasks", [str(task)], "priority-5", back="/p/default/tasks?view=list").headers[
            "location"
        ] == ("/p/default/tasks?view=list")
