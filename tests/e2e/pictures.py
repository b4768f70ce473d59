"""Makes the pictures of the README: `python -m tests.e2e.pictures`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from dittybag.assembly import with_workspace
from dittybag.cli.sample_workspace import PROJECT, fill_sample, make_changes, write_library
from dittybag.config import settings
from tests.e2e.serving import Served
from tests.programs import CHROMIUM
from tests.wire import ROOT

FOLDER = ROOT / "docs" / "images"


def _prompt(page: Page, base: str) -> None:
    page.goto(f"{base}/prompts")
    page.get_by_role("link", name="explain-error").first.click()
    page.get_by_label("error").fill("sqlite3.OperationalError: no such table: users")
    page.get_by_label("language").fill("Python")
    page.get_by_text("Explain this Python error").first.wait_for()


def _tasks(page: Page, base: str) -> None:
    page.goto(f"{base}/tasks")
    page.locator("[data-new]").first.fill("Rotate the signing key !5 @auth-module due friday")
    page.get_by_text("!5 Critical").first.wait_for()


def _activity(page: Page, base: str) -> None:
    page.goto(f"{base}/activity?kind=prompt")
    page.get_by_text("What changed").nth(1).click()
    page.locator("table.diff").first.wait_for()


PICTURES = {"prompt": _prompt, "tasks": _tasks, "activity": _activity}


def main() -> None:
    home = Path(tempfile.mkdtemp())
    chosen = settings({"DITTYBAG_HOME": str(home)})
    with_workspace(chosen, fill_sample)
    with_workspace(chosen, make_changes)
    write_library(home)
    FOLDER.mkdir(exist_ok=True)
    program = CHROMIUM.find()
    assert program is not None, "needs chromium"
    with Served(home, "--project", PROJECT) as served, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        page.goto(served.new_link())
        page.wait_for_url(f"{served.origin}/p/**")
        for name, visit in PICTURES.items():
            visit(page, f"{served.origin}/p/{PROJECT}")
            page.screenshot(path=FOLDER / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
