"""The Settings page: each section for those who may see it, users and tokens, projects and data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Page

from tests.cli.cli_runner import data, dittybag
from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.sample_home import fill_home
from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient

SETTINGS = "/p/auth-module/settings"
OWN = ["Projects", "Access"]
ADMIN = [*OWN, "Data"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    """A server of a user whose home folder contains only Cursor's folder."""
    home, user_home = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("user")
    (user_home / ".cursor").mkdir()
    fill_home(home)
    variables = {"HOME": str(user_home), "XDG_CONFIG_HOME": str(user_home / ".config")}
    with WebServerProcess(home, variables=variables) as server:
        yield server


@pytest.fixture(scope="module")
def token_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    """A server that requires tokens, with an admin, a reader and a project that only others see."""
    home = tmp_path_factory.mktemp("guarded")
    fill_home(home)
    for user in ("ann", "rob"):
        dittybag(home, "user", "add", user)
    dittybag(home, "project", "create", "private")
    dittybag(home, "project", "share", "private", "rob")
    with WebServerProcess(home, "--auth", "tokens") as server:
        yield server


def new_token(server: WebServerProcess, user: str, scope: str) -> str:
    made = data(dittybag(server.home, "token", "create", "--user", user, "--scope", scope, "--json"))
    return str(made["token"])


def sections(page: Page) -> list[str]:
    return page.get_by_role("navigation", name="Settings").get_by_role("link").all_inner_texts()


def open_section(page: Page, name: str) -> None:
    page.get_by_role("navigation", name="Settings").get_by_role("link", name=name, exact=True).click()
    page.locator(f'.settings-sections a[aria-current="page"]:text-is("{name}")').wait_for()


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_the_owner_sees_every_section_on_every_screen(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck, screen: Screen
) -> None:
    server.call("search", client="settings-test", query="password", limit=1)
    page = windows.open(server, SETTINGS, screen)
    main = page.get_by_role("navigation", name="Main")
    if screen.width < 500:
        main.get_by_text("More").click()
    assert main.get_by_role("link").last.inner_text() == "Settings"
    page.locator("#projects-menu summary").click()
    page.locator("#projects-menu").get_by_role("link", name="Settings").click()
    page.locator('.settings-sections a[aria-current="page"]').wait_for()
    assert sections(page) == ADMIN
    for name in ADMIN:
        open_section(page, name)
        if name == "Access":
            assert page.get_by_text("dittybag serve --http --auth tokens").is_visible()
        if name == "Data":
            page.get_by_role("button", name="Check now").click()
            page.get_by_text("The file is intact").wait_for()
            assert page.get_by_text("What to do, the most important first").is_visible()
        check_page(page, f"settings-{name.lower()}-{screen.name}")


def test_projects_are_renamed_and_deleted_with_undo(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    dittybag(server.home, "project", "create", "old-name")
    dittybag(server.home, "prompt", "add", "kept", "Text", "-p", "old-name")
    page = windows.open(server, SETTINGS)
    project = page.get_by_role("region", name="old-name")
    assert project.get_by_text("1 prompt, 0 resources, 0 tasks").is_visible()
    project.get_by_label("Name").fill("new-name")
    project.get_by_role("button", name="Rename").click()
    page.get_by_text("Renamed old-name to new-name").wait_for()
    # From its own page, which goes away with it.
    page.goto(f"{server.origin}/p/new-name/settings")
    page.get_by_role("button", name="Delete new-name").click()
    page.get_by_text("Deleted project “new-name” with what it contained").wait_for()
    assert "/p/default/" in page.url
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Restored new-name").wait_for()
    assert page.get_by_role("region", name="new-name").get_by_text("1 prompt,").is_visible()


def test_data_is_exported_imported_and_backed_up(
    server: WebServerProcess, windows: BrowserWindows, tmp_path: Path
) -> None:
    page = windows.open(server, f"{SETTINGS}/data")
    with page.expect_download() as export:
        page.get_by_role("button", name="Download an export").click()
    exported = tmp_path / "export.json"
    export.value.save_as(exported)
    assert msgspec.json.decode(exported.read_bytes())["format"] == "dittybag"
    (tmp_path / "new.csv").write_text("act,prompt\nSettings import,Text <b>{{ name }}</b>\n")
    page.get_by_label("File").set_input_files(tmp_path / "new.csv")
    page.get_by_role("button", name="Upload and preview").click()
    preview = page.get_by_role("region", name="Import this file?")
    preview.get_by_text("1 prompt", exact=True).wait_for()
    listed = dittybag(server.home, "prompt", "list", "-p", "auth-module").stdout
    assert "settings-import" not in listed.lower().replace(" ", "-")
    preview.get_by_role("button", name="Import").click()
    page.get_by_text("Imported 1 prompt").wait_for()
    listed = dittybag(server.home, "prompt", "list", "-p", "auth-module").stdout
    assert "settings-import" in listed.lower().replace(" ", "-")
    page.goto(f"{server.origin}{SETTINGS}/data")
    page.get_by_label("File").set_input_files(exported)
    page.get_by_role("button", name="Upload and preview").click()
    preview.get_by_text("nothing").first.wait_for()
    page.goto(f"{server.origin}{SETTINGS}/data")
    page.get_by_role("button", name="Back up now").click()
    row = page.get_by_role("listitem").filter(has_text="by hand")
    with page.expect_download() as backup:
        row.get_by_role("link", name="Download").click()
    copy = tmp_path / "copy.db"
    backup.value.save_as(copy)
    dittybag(server.home, "backup", "restore", str(copy), "--db", str(tmp_path / "restored.db"))
    (listed_backup,) = data(dittybag(server.home, "backup", "list", "--json"))["backups"]
    assert (listed_backup["automatic"], listed_backup["bytes"]) == (False, copy.stat().st_size)


def test_an_admin_creates_a_token_that_is_shown_once_and_revoked(
    token_server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck
) -> None:
    page = windows.open(token_server, "/sign-in", signed_in=False)
    page.get_by_label("Token").fill(new_token(token_server, "ann", "admin"))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/p/**")
    page.goto(f"{token_server.origin}{SETTINGS}/access")
    assert sections(page) == ADMIN
    page.get_by_label("Name").fill("zoe")
    page.get_by_role("button", name="Add user").click()
    page.get_by_text("Added zoe").wait_for()
    tokens = page.get_by_role("region", name="Tokens")
    tokens.get_by_label("User").select_option("zoe")
    tokens.get_by_label("May").select_option("read")
    tokens.get_by_label("Label").fill("laptop <b>")
    tokens.get_by_role("button", name="Create token").click()
    text = page.get_by_role("region", name="The new token of zoe").locator("code").last.inner_text()
    assert re.fullmatch(r"dittybag_\S{49}", text)
    check_page(page, "settings-new-token")
    assert text not in page.url
    assert text not in token_server.log
    zoe = BrowserClient.sign_in(token_server, text)
    page.goto(f"{token_server.origin}{SETTINGS}/access")
    assert text not in page.content()
    assert page.get_by_text("laptop <b>").is_visible()
    # This cannot be undone, so there is a question.
    page.locator("summary", has_text=f"Revoke the token {text[-4:]} of zoe").click()
    page.get_by_role("button", name="Revoke this token").locator("visible=true").click()
    page.get_by_text(f"Revoked the token of zoe that ends in {text[-4:]}").wait_for()
    assert BrowserClient(token_server).post("/sign-in", {"token": text}).status == 403
    assert zoe.cookies
    # A project that is hidden from an admin stays hidden.
    open_section(page, "Projects")
    assert page.get_by_role("region", name="private").count() == 0


def test_an_admin_makes_backups_and_only_the_owner_downloads_them(token_server: WebServerProcess) -> None:
    admin = BrowserClient.sign_in(token_server, new_token(token_server, "ann", "admin"))
    assert admin.post(f"{SETTINGS}/backups", {"form_secret": admin.secret}).status == 303
    page = admin.get(f"{SETTINGS}/data").text
    found = re.search(r"default-by-hand-\w+\.db", page)
    assert found is not None
    assert "backups/download" not in page
    assert admin.get(f"{SETTINGS}/backups/download?name={found[0]}").status == 403


def test_a_reader_sees_and_revokes_only_their_own_tokens(token_server: WebServerProcess) -> None:
    reader = BrowserClient.sign_in(token_server, new_token(token_server, "rob", "read"))
    page = reader.get(f"{SETTINGS}/access").text
    assert "Your tokens" in page
    assert "ann" not in re.sub(r"[a-z-]*ann[a-z]+|[a-z]+ann[a-z-]*", "", page)
    assert "/settings/data" not in page
    secret = reader.secret

    def submit(path: str, **form: str) -> int:
        return reader.post(f"{SETTINGS}/{path}", {**form, "form_secret": secret}).status

    for path in ("data", "export", "backups/download?name=x", "data?check=1", "data?key=x"):
        assert reader.get(f"{SETTINGS}/{path}").status == 403, path
    new_token(token_server, "ann", "read")
    tokens = data(dittybag(token_server.home, "token", "list", "--json"))["tokens"]
    theirs = next(token["id"] for token in tokens if token["user"] == "ann")
    own = next(token["id"] for token in tokens if token["user"] == "rob")
    refused: dict[str, dict[str, str]] = {
        "users": {"name": "eve"},
        "users/disable": {"name": "ann"},
        "tokens": {"user": "rob", "scope": "admin"},
        "projects": {"name": "mine"},
        "projects/rename": {"project": "auth-module", "name": "x"},
        "projects/delete": {"project": "auth-module"},
        "projects/share": {"project": "auth-module", "user": "rob"},
        "backups": {},
        "import/apply": {"key": "0" * 32},
    }
    for path, form in refused.items():
        assert submit(path, **form) == 403, path
    assert submit("tokens/revoke", id=str(theirs)) == 404
    assert submit("tokens/revoke", id=str(own)) == 303
    still = data(dittybag(token_server.home, "token", "list", "--json"))["tokens"]
    assert [token["id"] for token in still if token["revoked_at"] is None and token["user"] == "rob"] == []
