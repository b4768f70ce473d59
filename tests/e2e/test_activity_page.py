"""Activity: the feed, what a change has changed, and undoing it."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from dittybag.assembly import with_workspace
from dittybag.config import settings
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from tests.e2e.conftest import LOOKS, Checked, Look, Visits
from tests.e2e.sample_home import PROJECT
from tests.e2e.web_server_process import Served

FEED = "/p/default/activity"


def _deeds(page: Page) -> Locator:
    return page.locator("#feed > li")


def _newest(page: Page) -> Locator:
    return _deeds(page).first


@pytest.fixture(scope="module")
def prompt(served: Served) -> Callable[[str], Any]:
    """Makes a prompt in the way of an agent."""
    return lambda name: served.call("create_prompt", name=name, content="One\nTwo\nThree")


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
def test_the_feed_is_good_to_look_at(
    served: Served, visits: Visits, checked: Checked, look: Look, prompt: Callable[[str], Any]
) -> None:
    name = f"looked-at-{look.name}"
    prompt(name)
    served.call("update_prompt", name=name, content="One\n2\nThree\nFour", client="cursor")
    page = visits.open(served, f"{FEED}?where=all", look)
    _newest(page).get_by_text("What changed").click()
    expect(_newest(page).locator("table.diff")).to_be_visible()
    checked(page, f"activity-{look.name}")
    _newest(page).get_by_role("link", name="Undo").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    checked(page, f"change-{look.name}")


def test_what_is_new_comes_on_top_by_itself(
    served: Served, visits: Visits, prompt: Callable[[str], Any]
) -> None:
    page = visits.open(served, FEED)
    narrowed = visits.open(served, f"{FEED}?kind=task")
    for window in (page, narrowed):
        window.get_by_text("Live", exact=True).wait_for()
    shown = _deeds(page).count()
    open_one = page.locator(f"[data-seq='{_newest(page).get_attribute('data-seq')}'] details").first
    open_one.locator("summary").click()
    served.call("create_prompt", name="news", content="x", client="codex")
    expect(_newest(page)).to_contain_text("codex created prompt news")
    assert "fresh" in (_newest(page).get_attribute("class") or "")
    served.dittybag("task", "add", "Water the plants")
    expect(_newest(page)).to_contain_text("created task Water the plants")
    expect(_newest(narrowed)).to_contain_text("created task Water the plants")
    assert narrowed.locator("#feed > li", has_text="prompt").count() == 0
    # Nothing came twice, and what was open is still open.
    assert _deeds(page).count() == shown + 2
    assert open_one.get_attribute("open") is not None
    _newest(page).get_by_role("link", name="Water the plants").click()
    page.wait_for_url(re.compile(r"/p/default/tasks/\d+$"))


def test_more_news_than_fit_take_the_place_of_the_feed(served: Served, visits: Visits) -> None:
    page = visits.open(served, FEED)
    page.get_by_text("Live", exact=True).wait_for()
    table = "".join(f"many-{number},Text\n" for number in range(120))
    (served.home / "many.csv").write_text("name,content\n" + table)
    served.dittybag("import", str(served.home / "many.csv"), "-p", "default")
    expect(_newest(page)).to_contain_text("changes in one batch")
    expect(_newest(page)).to_contain_text("And 45 more changes")
    expect(_deeds(page)).to_have_count(1)
    page.get_by_role("link", name="Older").click()
    expect(_newest(page)).to_contain_text("50 changes in one batch")
    page.get_by_role("link", name="Older").click()
    expect(_newest(page)).to_contain_text("20 changes in one batch")
    page.get_by_role("link", name="Newer").click()
    expect(_newest(page)).to_contain_text("50 changes in one batch")


def test_the_feed_is_narrowed_by_who_what_where_and_name(
    served: Served, visits: Visits, prompt: Callable[[str], Any]
) -> None:
    prompt("narrow-one")
    served.call("create_prompt", name="narrow-two", content="x", client="zed")
    page = visits.open(served, FEED)
    page.get_by_label("Who").select_option("zed")
    page.wait_for_url(re.compile(r"actor=zed"))
    expect(page.locator(".change-group-text")).to_have_text(["zed created prompt narrow-two"])
    page.get_by_role("link", name="Clear filters").click()
    page.get_by_label("Name, title or URI").fill("NARROW-")
    page.keyboard.press("Enter")
    expect(_deeds(page)).to_have_count(2)
    page.get_by_label("What").select_option("Tasks")
    expect(page.get_by_text("No matching changes")).to_be_visible()
    page.get_by_role("link", name="Clear filters").click()
    # The documents of the sample are in another project.
    assert page.get_by_role("link", name="api-docs").count() == 0
    page.get_by_label("Where").select_option("All projects")
    page.wait_for_url(re.compile(r"where=all"))
    page.get_by_label("What").select_option("Resources")
    link = page.get_by_role("link", name="api-docs")
    expect(link).to_be_visible()
    assert link.get_attribute("href") == f"/p/{PROJECT}/resources/view?uri=file%3A%2F%2F%2Fdocs%2Fapi.md"


def test_undoing_shows_what_it_does_and_can_be_undone(
    served: Served, visits: Visits, prompt: Callable[[str], Any]
) -> None:
    prompt("precious")
    served.call("update_prompt", name="precious", content="Spoilt")
    served.call("update_prompt", name="precious", content="Spoilt again", client="cursor")

    def content() -> Any:
        found = served.call("search", query="precious", kinds=["prompt"])
        return found["hits"][0]["snippet"]

    page = visits.open(served, f"{FEED}?text=precious")
    _deeds(page).nth(1).get_by_role("link", name="Undo").click()
    expect(page.locator("#undo")).to_contain_text("Revert prompt precious")
    expect(page.locator("#undo .warning")).to_contain_text("cursor changed prompt precious")
    # Somebody is faster.
    served.call("update_prompt", name="precious", content="Once more", client="zed")
    page.get_by_role("button", name="Undo and overwrite").click()
    expect(page.get_by_role("alert")).to_contain_text("changed again in the meantime")
    expect(page.locator("#undo .warning")).to_contain_text("zed changed prompt precious")
    assert content() == "Once more"
    visits.problems.clear()
    page.get_by_role("button", name="Undo and overwrite").click()
    expect(page.locator(".note")).to_contain_text("Undone.")
    expect(_newest(page)).to_contain_text("via web reverted prompt precious")
    assert content() == "One\nTwo\nThree"
    page.get_by_role("button", name="Redo").click()
    expect(page.locator(".note")).to_contain_text("Undone.")
    assert content() == "Once more"


def test_what_was_done_together_is_undone_together(served: Served, visits: Visits) -> None:
    served.dittybag("project", "create", "doomed")
    served.dittybag("prompt", "add", "leaf", "-p", "doomed", stdin="x")
    served.dittybag("project", "delete", "doomed")
    page = visits.open(served, f"{FEED}?where=all")
    expect(_newest(page)).to_contain_text("made 2 changes in one batch")
    _newest(page).get_by_role("link", name="Undo").click()
    expect(page.locator("#undo")).to_contain_text("2 changes were made in one batch")
    assert page.locator("#undo li").all_inner_texts() == [
        "Restore project doomed",
        "Restore prompt leaf",
    ]
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.locator(".note")).to_contain_text("Undone.")
    page.goto(f"{served.origin}/p/doomed/prompts")
    expect(page.get_by_role("link", name="leaf")).to_be_visible()
    page.goto(f"{served.origin}{FEED}/1")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("cannot be renamed or deleted")
    visits.problems.clear()


def test_a_change_of_a_task_and_of_a_document_is_shown_part_by_part(served: Served, visits: Visits) -> None:
    served.dittybag("task", "update", "1", "--priority", "2", "--notes", "<img src=x onerror=alert(1)>")
    page = visits.open(served, f"{FEED}?kind=task")
    expect(_newest(page)).to_contain_text("changed task Hash passwords with argon2")
    _newest(page).get_by_text("What changed").click()
    parts = _newest(page).locator(".part-name")
    expect(parts).to_have_text(["Priority", "Notes"])
    expect(_newest(page).locator("table.diff").last).to_contain_text("<img src=x onerror=alert(1)>")
    page.goto(f"{served.origin}/p/{PROJECT}/activity?text=logo")
    _newest(page).get_by_text("What changed").click()
    expect(_newest(page).locator("table.diff").last).to_contain_text("bytes with the SHA-256")


async def _let_in(workspace: Workspace) -> dict[str, str]:
    """Tokens of Anna and Bert, of whom only Bert sees the project `secret`."""
    secret = await workspace.projects.create("secret", actor="demo")
    await workspace.prompts.create(Caller(secret.id, "demo"), name="hidden", content="x")
    default = await workspace.projects.find("default")
    await workspace.prompts.create(Caller(default.id, "demo"), name="shared", content="x")
    accounts = workspace.accounts
    tokens = {}
    for name in ("anna", "bert"):
        await accounts.add_user(name, actor="demo")
        tokens[name] = (await accounts.create_token(name, "write", actor="demo")).text
    await accounts.share("secret", "bert", "read", actor="demo")
    return tokens


def test_with_a_token_only_the_project_and_own_tasks_are_seen(
    tmp_path_factory: pytest.TempPathFactory, visits: Visits
) -> None:
    home = tmp_path_factory.mktemp("tokens")
    # The browser's loop is the one of this thread.
    with ThreadPoolExecutor(1) as elsewhere:
        chosen = settings({"DITTYBAG_HOME": str(home)})
        tokens = elsewhere.submit(with_workspace, chosen, _let_in).result()
    with Served(home, "--auth", "tokens") as served:
        served.call("task_create", token=tokens["bert"], title="Of Bert")
        served.call("task_create", token=tokens["anna"], title="Of Anna")
        page = visits.open(served, "/", known=False)
        page.get_by_label("Token").fill(tokens["anna"])
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/p/default")
        page.goto(f"{served.origin}{FEED}?where=all")
        text = page.locator("#feed").inner_text()
        assert "Of Anna" in text
        assert "shared" in text
        assert "Of Bert" not in text
        assert "hidden" not in text
        assert page.get_by_label("Where").count() == 0
        page.locator("#projects-menu summary").click()
        expect(page.locator("#project-list a")).to_have_count(1)
        assert page.get_by_label("New project").count() == 0
        for address in ("/p/secret", "/p/secret/activity", f"{FEED}/3"):
            answer = page.goto(served.origin + address)
            assert answer is not None
            assert answer.status == 404, address
        visits.problems.clear()
