"""Makes the pictures of the README and the guides from the running web UI: `make pictures`."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from dittybag.assembly.workspace_session import with_workspace
from dittybag.cli.sample_workspace import PROJECT, fill_demo, write_library
from dittybag.config import environment_with_home, settings
from tests.e2e.web_server_process import WebServerProcess
from tests.programs import CHROMIUM
from tests.stdio_server_process import ROOT

FOLDER: Final = ROOT / "docs" / "images"
#: The icon of the bundle for desktop clients, which show no SVG.
ICON: Final = ROOT / "bundle" / "icon.png"
ICON_PIXELS: Final = 512
#: About the width at which a README is shown, so that text stays legible.
SIZE: Final = (1000, 640)
COLOURS: Final = 128
PHONE_SIZE: Final = (375, 640)
#: How long a frame is shown while somebody types, and when there is something to read, in milliseconds.
TYPING: Final = 160
READING: Final = 2200
LETTERS_PER_FRAME: Final = 4
TASK: Final = "Rotate the signing key !5 @auth-module due friday"
PINNED: Final = ("refactor-guide",)
ERROR: Final = "sqlite3.OperationalError: no such table: users"


class Film:
    """The frames of an animated picture."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._frames: list[Image.Image] = []
        self._times: list[int] = []

    def shoot(self, milliseconds: int) -> None:
        """Add what the page shows now."""
        frame = Image.open(io.BytesIO(self._page.screenshot())).convert("RGB")
        self._frames.append(frame.quantize(COLOURS, dither=Image.Dither.NONE))
        self._times.append(milliseconds)

    def save(self, path: Path) -> None:
        first, *rest = self._frames
        first.save(path, save_all=True, append_images=rest, duration=self._times, loop=0, optimize=True)


def picture_prompt(page: Page, base: str) -> None:
    page.goto(f"{base}/prompts")
    page.get_by_role("link", name="explain-error").first.click()
    page.get_by_label("error").fill(ERROR)
    page.get_by_label("language").fill("Python")
    result = page.get_by_text("Explain this Python error").first
    result.wait_for()
    result.scroll_into_view_if_needed()


def picture_tasks(page: Page, base: str) -> None:
    page.goto(f"{base}/tasks")
    page.locator("[data-new]").first.fill(TASK)
    page.get_by_text("!5 Critical").first.wait_for()


def picture_graph(page: Page, base: str) -> None:
    page.goto(f"{base}/tasks/graph?ended=1")
    page.locator(".graph-task").first.wait_for()


def picture_activity(page: Page, base: str) -> None:
    page.goto(f"{base}/activity?kind=prompt")
    page.locator("[data-more]").nth(1).click()
    page.locator("table.diff").first.wait_for()


def picture_home(page: Page, base: str) -> None:
    page.goto(f"{base}/")
    page.locator(".home-task").first.wait_for()


def picture_palette(page: Page, base: str) -> None:
    page.goto(f"{base}/prompts")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Command or search").fill("log")
    page.get_by_role("option").filter(has_text="login").first.wait_for()


def picture_list(page: Page, base: str) -> None:
    page.goto(f"{base}/tasks?view=list")
    page.locator("[data-item]").first.wait_for()


def picture_connect(page: Page, base: str) -> None:
    page.goto(f"{base}/connect")
    page.get_by_role("heading", name="Claude Code").first.wait_for()


def picture_context(page: Page, base: str) -> None:
    page.goto(f"{base}/context")
    for name in PINNED:
        page.get_by_label("Pin an item").fill(name)
        page.get_by_role("button", name="Pin", exact=True).click()
        page.get_by_text(f"Pinned “{name}”").wait_for()
    page.goto(f"{base}/tasks/2/context")
    page.locator(".pack-items").wait_for()


PICTURES: Final = {
    "connect": picture_connect,
    "home": picture_home,
    "palette": picture_palette,
    "prompt": picture_prompt,
    "tasks": picture_tasks,
    "graph": picture_graph,
    "activity": picture_activity,
    "context": picture_context,
}


#: Pictures of a phone, and of the dark theme.
PHONE_PICTURES: Final = {"phone-home": picture_home, "phone-tasks": picture_list}
DARK_PICTURES: Final = {"home-dark": picture_home}


def film_tour(page: Page, base: str, server: WebServerProcess) -> Film:
    """Add a task, render a prompt, review an agent's change and undo it."""
    film = Film(page)
    page.goto(f"{base}/tasks")
    line = page.locator("[data-new]").first
    film.shoot(READING // 2)
    for end in range(LETTERS_PER_FRAME, len(TASK) + LETTERS_PER_FRAME, LETTERS_PER_FRAME):
        line.fill(TASK[:end])
        film.shoot(TYPING)
    page.get_by_text("!5 Critical").first.wait_for()
    film.shoot(READING)
    line.press("Enter")
    page.locator("[data-task]").filter(has_text="Rotate the signing key").first.wait_for()
    film.shoot(READING)
    picture_prompt(page, base)
    film.shoot(READING * 2)
    page.goto(f"{base}/activity?kind=prompt")
    film.shoot(READING // 2)
    server.call("update_prompt", name="commit-message", content="Write something short.")
    page.get_by_text("claude-code changed prompt Commit Message").wait_for()
    film.shoot(READING)
    page.locator("[data-more]").first.click()
    page.locator("table.diff").first.wait_for()
    film.shoot(READING)
    page.locator(".change .undo").first.click()
    page.get_by_role("button", name="Redo").first.wait_for()
    film.shoot(READING * 2)
    return film


def open_page(browser: Browser, server: WebServerProcess, size: tuple[int, int], scheme: str) -> Page:
    """Open a signed-in page."""
    width, height = size
    page = browser.new_page(
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page.goto(server.new_link())
    page.wait_for_url(f"{server.origin}/p/**")
    return page


def draw_icon(browser: Browser) -> None:
    """Save the web UI's icon as PNG."""
    page = browser.new_page(viewport={"width": ICON_PIXELS, "height": ICON_PIXELS})
    drawing = (ROOT / "src" / "dittybag" / "web" / "static" / "icon.svg").read_text()
    page.set_content(f"<style>body {{ margin: 0 }}</style>{drawing}")
    page.screenshot(path=ICON, omit_background=True)
    page.close()


def main() -> None:
    home = Path(tempfile.mkdtemp())
    chosen = settings(environment_with_home(str(home)))
    with_workspace(chosen, fill_demo)
    write_library(home)
    FOLDER.mkdir(exist_ok=True)
    program = CHROMIUM.find()
    assert program is not None, "needs chromium"
    with WebServerProcess(home, "--project", PROJECT) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        draw_icon(browser)
        base = f"{server.origin}/p/{PROJECT}"
        for pictures, size, scheme in (
            (PICTURES, SIZE, "light"),
            (PHONE_PICTURES, PHONE_SIZE, "light"),
            (DARK_PICTURES, SIZE, "dark"),
        ):
            page = open_page(browser, server, size, scheme)
            for name, visit in pictures.items():
                visit(page, base)
                page.screenshot(path=FOLDER / f"{name}.png")
        film_tour(open_page(browser, server, SIZE, "light"), base, server).save(FOLDER / "tour.gif")
        browser.close()


if __name__ == "__main__":
    main()
