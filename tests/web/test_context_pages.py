"""Pins and context packs in the web UI, as a browser without scripts gets them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.cli.cli_runner import data, dittybag
from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient, toast_of

HOME = "/p/default"
CONTEXT = f"{HOME}/context"
#: What the pack of the task has, and HTML must not change: markup, a fence, entities and line ends.
HOSTILE = "<script>alert(1)</script> & &amp; `````\r\nSecond line\rThird line\n\n\n  end"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    """A server with a task, what belongs to it, and two agents."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "libraries" / "team"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text("---\ntitle: Review a change\n---\nRead the diff.\n")
    with WebServerProcess(home) as server:
        server.call("create_prompt", "codex", name="retry-rules", content="Retry a webhook twice. " * 60)
        server.call("create_prompt", name="style", content="Write short sentences.")
        server.call("create_resource", name="notes", uri="file:///notes.md", content=HOSTILE)
        parent = server.call("task_create", title="Release", notes="By Friday")["id"]
        first = server.call("task_create", title="Choose the queue", notes="Use the one we have")["id"]
        task = {"title": "Retry the webhook", "notes": HOSTILE, "parent": f"task:{parent}"}
        server.call(
            "task_add", tasks=[task | {"blocked_by": [f"task:{first}"], "links": ["file:///notes.md"]}]
        )
        server.call("create_prompt", "cursor", name="late", content="The last change")
        yield server


TASK = 3


def pack_text(client: BrowserClient, path: str, **query: object) -> str:
    response = client.get(f"{path}/text?{urlencode(query)}")
    assert response.status == 200
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    return response.text


def shown_text(page: str) -> str:
    """Return the text of the pack on a page, as a browser shows it."""
    found = re.search(r'<pre class="pack-text".*?>\n(.*?)</pre>', page, re.DOTALL)
    assert found is not None
    assert "<" not in found[1]
    return unescape(found[1])


def tool_text(server: WebServerProcess, client: str, **arguments: Any) -> str:
    result = server.request("tools/call", "context", {"name": "context", "arguments": arguments}, client)
    return str(result["content"][0]["text"])


class TestPacks:
    @pytest.mark.parametrize("agent", ["claude-code", "cursor", "never-here"])
    def test_the_tab_of_a_task_has_the_text_of_the_resource(
        self, server: WebServerProcess, client: BrowserClient, agent: str
    ) -> None:
        path = f"{HOME}/tasks/{TASK}/context"
        chosen = "-" if agent == "never-here" else agent
        uri = f"dittybag://packs/task/{TASK}"
        expected = server.request("resources/read", uri, {"uri": uri}, agent)["contents"][0]["text"]
        assert HOSTILE in expected
        assert pack_text(client, path, agent=chosen) == expected
        page = client.get(f"{path}?agent={chosen}").text
        assert shown_text(page) == expected
        assert "<script>alert" not in page
        for budget in (200, 1500, 4000, 50_000):
            packed = tool_text(server, agent, task=TASK, budget=budget)
            assert pack_text(client, path, agent=chosen, budget=budget) == packed

    def test_the_changes_depend_on_the_agent(self, client: BrowserClient) -> None:
        packs = {agent: pack_text(client, CONTEXT, agent=agent) for agent in ("claude-code", "cursor", "-")}
        # Its own change is the last one.
        assert "prompt late" not in packs["cursor"]
        assert "prompt late" in packs["claude-code"]
        assert "prompt late" in packs["-"]
        # The latest agent is chosen, and so is the one of a name that is not there.
        assert pack_text(client, CONTEXT) == pack_text(client, CONTEXT, agent="nobody") == packs["cursor"]
        page = unescape(client.get(CONTEXT).text)
        assert re.findall(r'<option value="([^"]+)"( selected)?>', page) == [
            ("cursor", " selected"),
            ("claude-code", ""),
            ("codex", ""),
            ("-", ""),
        ]
        assert "Its own changes are left out" in page
        assert "has the changes of everybody" in client.get(f"{CONTEXT}?agent=-").text

    def test_a_query_and_a_budget_select_what_is_shown(
        self, server: WebServerProcess, client: BrowserClient
    ) -> None:
        query = "webhook & <b>"
        assert pack_text(client, CONTEXT, query=query, agent="cursor") == tool_text(
            server, "cursor", query=query
        )
        page = client.get(f"{CONTEXT}?{urlencode({'query': query, 'budget': 8000})}").text
        assert ">8,000</a>" in page
        assert "of 8,000 tokens" in page
        assert "Left out because of the budget" not in page
        assert re.search(r"retry-rules</a>.*?Found prompt</td>.*?whole text</td>", page) is not None
        # The links to other budgets keep the query and the agent.
        link = unescape(re.findall(r'href="([^"]+budget=1500)"', page)[0])
        assert "webhook+%26+%3Cb%3E" in link
        assert "agent=cursor" in link
        small = client.get(unescape(link).replace("budget=1500", "budget=200")).text
        assert re.search(r"retry-rules</a>.*?[\d,]+ of 1,380 characters</td>", small) is not None

    def test_what_has_no_room_is_listed(self, client: BrowserClient) -> None:
        page = client.get(f"{HOME}/tasks/{TASK}/context?budget=200&agent=-").text
        contents, _, left_out = page.partition("Left out because of the budget")
        assert "Retry the webhook</a>" in contents
        assert "Choose the queue</a>" in left_out
        assert re.search(r"\d+ more changes", left_out) is not None
        for name in re.findall(r'<li><a href="[^"]+">([^<]+)</a>', left_out):
            assert name not in shown_text(page)
        tokens = [int(number) for number in re.findall(r'<td class="right">([\d,]+)</td>', contents)]
        [total] = re.findall(r'class="pack-tokens">(\d+)<', page)
        assert sum(tokens) < int(total) <= 200

    @pytest.mark.parametrize(
        ("budget", "used"), [("199", 200), ("50001", 50_000), ("x", 2_000), ("-1", 2_000), ("9" * 30, 2_000)]
    )
    def test_a_budget_out_of_range_is_replaced_and_reported(
        self, client: BrowserClient, budget: str, used: int
    ) -> None:
        page = client.get(f"{CONTEXT}?budget={budget}").text
        assert f"Budget must be an integer from 200 to 50,000. This is the pack for {used:,}." in page
        assert f"of {used:,} tokens" in page

    def test_a_task_that_is_not_there_has_no_pack(self, client: BrowserClient) -> None:
        for number in ("999", "0", "x", "9" * 30):
            for path in ("context", "context/text"):
                assert client.get(f"{HOME}/tasks/{number}/{path}").status == 404
        # A page that was open when the task was deleted.
        gone = client.get(f"{HOME}/tasks/999/context", hx_request="true")
        assert gone.status == 200
        assert 'id="pack"' in gone.text
        assert "was deleted" in gone.text


class Pins:
    """Pins and unpins in a browser."""

    def __init__(self, client: BrowserClient) -> None:
        self.client = client
        self.secret = client.secret

    def send(self, **fields: str) -> tuple[int, str]:
        """Send the form; return the status and the page that it leads to."""
        response = self.client.post(f"{HOME}/pins", {"form_secret": self.secret, **fields})
        if response.status != 303:
            return response.status, response.text
        return 303, self.client.get(response.headers["location"]).text

    def listed(self) -> list[str]:
        return re.findall(r'name="unpin" value="([^"]+)"', unescape(self.client.get(CONTEXT).text))


class TestPins:
    def test_items_are_pinned_unpinned_and_undone_in_order(
        self, server: WebServerProcess, client: BrowserClient
    ) -> None:
        pins = Pins(client)
        prompt = data(dittybag(server.home, "prompt", "show", "style", "--json"))["id"]
        resource = data(dittybag(server.home, "resource", "show", "notes", "--json"))["id"]
        for typed, name in (("style", "style"), ("task:1", "Release"), ("file:///notes.md", "notes")):
            status, page = pins.send(pin=f" {typed} ")
            assert (status, toast_of(page)[0]) == (303, f"Pinned “{name}”")
        expected = [f"prompt:{prompt}", "task:1", f"resource:{resource}"]
        assert pins.listed() == expected
        assert toast_of(pins.send(pin="task:1")[1])[0] == "Already pinned: “Release”"
        # In the order of the list, and with the links to the items.
        page = client.get(CONTEXT).text
        linked = re.findall(r'<a data-item href="([^"]+)">([^<]+)', unescape(page))
        assert [title for _, title in linked] == ["style", "Release", "notes"]
        assert all(client.get(link).status == 200 for link, _ in linked)
        for role in ("Pinned prompt", "Pinned task", "Pinned resource"):
            assert role in page

        # The page of each item offers the opposite.
        for link, _ in linked:
            assert "Unpin this" in client.get(link).text
        status, page = pins.send(unpin="task:1", back=f"{HOME}/tasks/1")
        assert (status, toast_of(page)[0]) == (303, "Unpinned “Release”")
        assert "Pin this task" in page
        assert toast_of(pins.send(unpin="task:1")[1])[0] == "Not pinned: “Release”"
        pins.send(pin="late")
        undone = client.post(f"{HOME}/undo", toast_of(pins.send(unpin=expected[0])[1])[1])
        assert undone.status == 303
        assert toast_of(client.get(undone.headers["location"]).text)[0] == "Restored the pins of “default”"
        assert pins.listed()[:2] == [expected[0], expected[2]]

    def test_an_item_that_was_deleted_is_listed_and_can_be_unpinned(
        self, server: WebServerProcess, client: BrowserClient
    ) -> None:
        pins = Pins(client)
        doomed = server.call("create_prompt", name="doomed", content="Text")["id"]
        pins.send(pin="doomed")
        dittybag(server.home, "prompt", "delete", "doomed")
        page = client.get(CONTEXT).text
        item = re.findall(rf'<li id="pin-prompt%3A{doomed}">.*?</li>', page, re.DOTALL)[0]
        assert "deleted, or not visible to you" in item
        assert "<a " not in item
        assert f"prompt:{doomed}" in pins.listed()
        assert pins.send(unpin=f"prompt:{doomed}")[0] == 303
        assert f"prompt:{doomed}" not in pins.listed()

    @pytest.mark.parametrize(
        ("typed", "status", "message"),
        [
            ("", 422, "Type what to pin"),
            ("no such item", 404, "There is nothing called 'no such item'"),
            ("task:999", 404, "There is nothing called 'task:999'"),
            ("<b>\0", 422, "must not contain"),
            ("x" * 5000, 404, "There is nothing called"),
            ("twin", 409, "matches several items"),
        ],
        ids=["empty", "unknown", "no task", "control character", "long", "ambiguous"],
    )
    def test_what_cannot_be_pinned_is_explained_beside_the_field(
        self, server: WebServerProcess, client: BrowserClient, typed: str, status: int, message: str
    ) -> None:
        if typed == "twin":
            server.call("create_prompt", name="twin", content="Text")
            server.call("create_resource", name="twin", uri="file:///twin", content="Text")
        pins = Pins(client)
        before = pins.listed()
        found, page = pins.send(pin=typed)
        assert found == status
        assert message in unescape(page)
        assert 'id="problem-pin"' in page
        assert "<b>" not in page
        assert pins.listed() == before
        fragment = client.post(f"{HOME}/pins", {"form_secret": pins.secret, "pin": typed}, hx_request="true")
        assert (fragment.status, "data-toast" in fragment.text) == (status, True)

    def test_a_library_prompt_is_pinned_by_its_name(self, client: BrowserClient) -> None:
        pins = Pins(client)
        assert toast_of(pins.send(pin="team:review")[1])[0] == "Pinned “team:review”"
        assert pins.listed()[-1] == "library:team:review"
        page = client.get(CONTEXT).text
        assert "Review a change</a>" in page
        assert "Read the diff." in shown_text(page)
        assert "Unpin this prompt" in client.get(f"{HOME}/libraries/prompt?name=team:review").text
        assert toast_of(pins.send(unpin="library:team:review")[1])[0] == "Unpinned “team:review”"

    def test_the_form_leads_back_to_pages_of_the_project_only(self, client: BrowserClient) -> None:
        secret = client.secret
        for back, location in (
            (f"{HOME}/prompts?q=x", f"{HOME}/prompts?q=x"),
            ("https://example.com/", CONTEXT),
            ("//example.com/p/default", CONTEXT),
            (f"{HOME}.example.com", CONTEXT),
            ("", CONTEXT),
        ):
            sent = client.post(f"{HOME}/pins", {"form_secret": secret, "pin": "style", "back": back})
            assert (sent.status, sent.headers["location"]) == (303, location)

    def test_suggestions_have_references_that_can_be_pinned(
        self, server: WebServerProcess, client: BrowserClient
    ) -> None:
        server.call("create_prompt", name="webhook-style", content="Text", title='A "title" <i>')
        assert client.get(f"{CONTEXT}/items").text.strip() == ""
        found = client.get(f"{CONTEXT}/items?pin=webho", hx_request="true").text
        refs = [unescape(ref) for ref in re.findall(r'<option value="([^"]+)">', found)]
        assert {"webhook-style", f"task:{TASK}", "retry-rules"} <= set(refs)
        assert "<i>" not in found
        pins = Pins(client)
        assert all(pins.send(pin=ref)[0] == 303 for ref in refs)

    def test_a_read_only_server_shows_pins_and_packs_without_forms(self, server: WebServerProcess) -> None:
        with WebServerProcess(server.home, "--read-only") as other:
            reader = BrowserClient.sign_in(other)
            for path in ("context", "prompts", "tasks", "tasks?view=list", "resources", "tasks/1"):
                page = reader.get(f"{HOME}/{path}")
                assert page.status == 200
                assert "/pins" not in unescape(page.text).replace("static/pins.js", ""), path
                assert "data-pins" not in page.text
            assert "Pinned" in reader.get(CONTEXT).text
            refused = reader.post(f"{HOME}/pins", {"form_secret": reader.secret, "pin": "style"})
            assert refused.status == 403
