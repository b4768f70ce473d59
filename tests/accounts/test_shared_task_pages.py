"""Who sees and changes the tasks and pins of a project in the web UI: members, readers and strangers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest

from dittybag.services.caller import Caller
from dittybag.services.task_queue import ClaimRequest
from tests.accounts.accounts_world import HIDDEN_PROJECT, STRANGER, TEAM_PROJECT, World
from tests.postgres_servers import PostgresServer
from tests.web.browser_client import BrowserClient

BOARD = f"/p/{TEAM_PROJECT}/tasks"
NO_NUMBER = 987654
NO_ID = "00000000-0000-7000-8000-000000000000"
#: Texts of a task that strangers must not see.
TITLE, LABEL, HOLDER, COMMENT = "Quarterly numbers", "confidential", "secret-agent", "Between us"

#: The actions on a task, with the fields of their forms.
ACTIONS: Mapping[str, Mapping[str, str]] = {
    "": {"title": "Overwritten"},
    "/done": {},
    "/reopen": {},
    "/move": {"by": "status", "value": "review"},
    "/comments": {"comment": "Hello"},
    "/claim": {},
    "/take-away": {},
    "/delete": {},
    "/undo": {"seq": "SEQ"},
}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world on each database. Other tests assume that users see no tasks of others."""
    database = None
    if request.param == "postgres":
        server = request.getfixturevalue("server")
        assert isinstance(server, PostgresServer)
        server.sql("CREATE DATABASE shared_task_pages OWNER clerk")
        database = server.url("shared_task_pages", user="clerk")
    with World(tmp_path_factory.mktemp("world"), database) as world:
        yield world


def browser(world: World, holder: str) -> BrowserClient:
    token = next(item.token for item in world.holders if item.name == holder)
    return BrowserClient.sign_in_with_token(world.host("all"), token)


def new_shared_task(world: World) -> int:
    """Create a task of the project, with a comment, that an agent has claimed."""
    project = world.projects[TEAM_PROJECT]
    member = Caller(project, "alice", "alice")
    agent = Caller(project, HOLDER, "alice", interface="mcp")

    async def create() -> int:
        tasks = world.workspace.tasks
        task = await tasks.create(
            member, title=TITLE, labels=[LABEL], project=TEAM_PROJECT, comment=COMMENT, links=["notes-link"]
        )
        await world.workspace.task_queue.claim(agent, task.id, ClaimRequest())
        return task.id

    return world.run(create())


def post(client: BrowserClient, number: int, action: str, seq: int = 0) -> tuple[int, str]:
    """Send the form of an action; return the status and the text without the number of the task."""
    fields = {name: str(seq) if value == "SEQ" else value for name, value in ACTIONS[action].items()}
    secret = client.secret_of("/p/team/tasks")
    address = "/p/team/undo" if action == "/undo" else f"{BOARD}/{number}{action}"
    response = client.post(address, {"form_secret": secret, **fields})
    return response.status, _without_number(response.text, number)


def _without_number(text: str, number: int) -> str:
    # Not the 8 of UTF-8.
    return re.sub(rf"(?<!utf-)\b{number}\b", "N", text)


def test_a_member_sees_and_changes_a_task_of_somebody_else(shared: World) -> None:
    number = new_shared_task(shared)
    bob = browser(shared, "other user")
    board = bob.get(BOARD).text
    card = _card(board, number)
    for text in (TITLE, LABEL, HOLDER, "agent", "min left"):
        assert text in card
    assert 'draggable="true"' in card
    assert "Take away" in bob.get(f"{BOARD}/{number}").text
    for action in ("/comments", "/take-away", "/move", "/done", "/reopen", "/delete"):
        assert post(bob, number, action)[0] == 303, action
    assert post(bob, number, "/undo", shared.last_change())[0] == 303


def test_a_reader_sees_the_board_without_controls(shared: World) -> None:
    number = new_shared_task(shared)
    rita = browser(shared, "read role")
    card = _card(rita.get(BOARD).text, number)
    for text in (TITLE, LABEL, HOLDER):
        assert text in card
    assert card.count("<button") == 0
    assert "draggable" not in card.replace('draggable="false"', "")
    page = rita.get(f"{BOARD}/{number}").text
    assert COMMENT in page
    assert "Take away" not in page
    assert 'id="task-form"' not in page
    assert 'id="comment-form"' not in page
    assert TITLE in rita.get(f"{BOARD}/graph").text
    seq = shared.last_change()
    for action in ACTIONS:
        assert post(rita, number, action, seq)[0] == 403, action
    assert shared.last_change() == seq


def test_a_task_of_a_hidden_project_does_not_exist_for_strangers(shared: World) -> None:
    number = new_shared_task(shared)
    mallory = browser(shared, "outsider")
    for path in ("", "?by=project", "?by=priority", "?view=list", "/graph", "/graph?ended=1"):
        text = mallory.get(BOARD + path).text
        assert mallory.get(BOARD + path).status == 200
        for secret in (TITLE, LABEL, HOLDER, COMMENT):
            assert secret not in text, path
    for path in ("", "/related", "/context", "/context/text", "/state?version=1"):
        found, missing = (mallory.get(f"{BOARD}/{each}{path}") for each in (number, NO_NUMBER))
        assert found.status == missing.status == 404
        assert _without_number(found.text, number) == _without_number(missing.text, NO_NUMBER)
    assert mallory.get(f"{BOARD}/graph?task={number}").status == 404
    seq = shared.last_change()
    for action in ACTIONS:
        assert post(mallory, number, action, seq) == post(mallory, NO_NUMBER, action, seq), action
        assert post(mallory, number, action, seq)[0] == 404
    assert shared.last_change() == seq


def test_strangers_cannot_find_out_whether_a_project_or_a_task_exists(shared: World) -> None:
    number = new_shared_task(shared)
    mallory = browser(shared, "outsider")
    fragment = {"HX_Request": "true"}
    previews = [
        mallory.get(f"{BOARD}/quick-add?text=Mine+%40{name}", **fragment).text.replace(name, "NAME")
        for name in (TEAM_PROJECT, "no-such-project")
    ]
    assert previews[0] == previews[1]
    assert "not a project" in previews[0]
    task = shared.workspace.tasks.create(shared.caller("mallory"), title="Mine", project=None)
    own = shared.run(task).id
    page = mallory.get(f"{BOARD}/{own}").text
    assert (
        f'<option value="{TEAM_PROJECT}"' not in page.partition('name="project"')[2].partition("selected")[0]
    )
    secret = mallory.secret_of(BOARD)
    answers = [
        mallory.post(f"{BOARD}/{own}", {"form_secret": secret, "title": "Mine", "blocked_by": str(each)})
        for each in (number, NO_NUMBER)
    ]
    assert [answer.status for answer in answers] == [422, 422]
    assert TITLE not in answers[0].text
    assert f"task {number} does not exist" in answers[0].text


CONTEXT = f"/p/{TEAM_PROJECT}/context"


def test_members_pin_and_readers_see_what_agents_with_their_access_get(shared: World) -> None:
    number, own = new_shared_task(shared), shared.new_task("alice")
    alice, rita, bob = (browser(shared, name) for name in ("member", "read role", "other user"))
    for item in (f"task:{number}", f"task:{own}", "notes"):
        sent = alice.post("/p/team/pins", {"form_secret": alice.secret_of(CONTEXT), "pin": item})
        assert sent.status == 303, item
    seq = shared.last_change()
    assert {TITLE, "word-of-alice", "notes"} <= _words(alice.get(CONTEXT).text)
    assert "Pinned task task:" in alice.get(f"{CONTEXT}/text?budget=8000").text

    for reader in (rita, browser(shared, "read scope")):
        page = reader.get(CONTEXT).text
        assert TITLE in page
        assert "data-pins" not in page
        assert "data-pins" not in reader.get(f"{BOARD}/{number}").text
        refused = reader.post(
            "/p/team/pins", {"form_secret": reader.secret_of(CONTEXT), "unpin": f"task:{number}"}
        )
        assert refused.status == 403
        assert shared.last_change() == seq
    # The task that is alice's alone is in the list without its title, and not in the packs of others.
    page = rita.get(CONTEXT).text
    assert f"task:{own}" in page
    assert "deleted, or not visible to you" in page
    for other in (rita, bob):
        text = other.get(f"{CONTEXT}/text?budget=50000").text
        assert TITLE in text
        assert "word-of-alice" not in text + other.get(CONTEXT).text
        assert other.get(f"{BOARD}/{own}/context").status == 404

    undone = bob.post("/p/team/undo", {"form_secret": bob.secret_of(CONTEXT), "seq": str(seq)})
    assert undone.status == 303
    assert "file:///notes" not in bob.get(CONTEXT).text.partition('id="pins"')[2].partition("</ol>")[0]


def test_a_pack_is_shown_for_agents_of_ones_own(shared: World) -> None:
    project = shared.projects[TEAM_PROJECT]
    for user in ("alice", "bob"):
        caller = Caller(project, f"{user} via cursor", user, interface="mcp")
        shared.run(shared.workspace.prompts.create(caller, name=f"by-{user}", content="Text"))
    alice, bob = browser(shared, "member"), browser(shared, "other user")
    assert "alice via cursor" in _agents(alice.get(CONTEXT).text)
    assert "bob via cursor" not in _agents(alice.get(CONTEXT).text)
    assert "prompt by-bob" in alice.get(f"{CONTEXT}/text?budget=8000&agent=alice+via+cursor").text
    changes = bob.get(f"{CONTEXT}/text?budget=8000&agent=bob+via+cursor").text.partition("## Changed")[2]
    assert "by-" not in changes


def test_strangers_see_no_pins_and_no_packs(shared: World) -> None:
    number = new_shared_task(shared)
    mallory = browser(shared, "outsider")
    own = shared.new_task("mallory")
    assert mallory.get(f"{BOARD}/{own}").status == 200
    assert "About this task" not in mallory.get(f"{BOARD}/{own}").text
    for path in (CONTEXT, f"{CONTEXT}/text", f"{CONTEXT}/items?pin=a", f"{BOARD}/{own}/context"):
        assert mallory.get(path).status == 404, path
    seq = shared.last_change()
    secret = mallory.secret_of(BOARD)
    for item in (f"task:{number}", f"task:{own}", "notes", "nothing"):
        for field in ("pin", "unpin"):
            sent = mallory.post("/p/team/pins", {"form_secret": secret, field: item})
            assert sent.status == 404, item
            assert TITLE not in sent.text
    assert shared.last_change() == seq
    # What a member may not see cannot be pinned, and looks as if it did not exist.
    alice = browser(shared, "member")
    secret = alice.secret_of(CONTEXT)
    hidden, private = shared.new_prompt(HIDDEN_PROJECT), shared.new_task(STRANGER)
    for foreign, missing in (
        (hidden[0], "nothing"),
        (f"prompt:{hidden[1]}", f"prompt:{NO_ID}"),
        (f"task:{private}", f"task:{NO_NUMBER}"),
    ):
        answers = [
            alice.post("/p/team/pins", {"form_secret": secret, "pin": item}, hx_request="true")
            for item in (foreign, missing)
        ]
        assert [answer.status for answer in answers] == [404, 404]
        assert answers[0].text.replace(foreign, missing) == answers[1].text


def _words(page: str) -> set[str]:
    """Return which texts of the test's items are in the list of pins."""
    pins = page.partition('id="pins"')[2].partition("</ol>")[0]
    return {word for word in (TITLE, "word-of-alice", "notes") if word in pins}


def _agents(page: str) -> str:
    return page.partition('id="pack-agent"')[2].partition("</select>")[0]


def _card(board: str, number: int) -> str:
    """Return the HTML of a card."""
    found = re.search(rf'<li [^>]*data-task="{number}".*?</li>', board, re.DOTALL)
    assert found is not None
    return found[0]
