"""The resource pages: previews, editing, uploads and history."""

from __future__ import annotations

import http.client
import json
import struct
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import SCREENS, BrowserWindows, PageCheck, Screen
from tests.e2e.web_server_process import WebServerProcess

RESOURCES = "/p/default/resources"

GUIDE = """# Guide

Some *words*, and <script>alert(1)</script>.

| a | b |
|---|---|
| 1 | 2 |

```python
def answer() -> int:
    return 42
```
"""
DATA = '{"name": "Dittybag", "list": [1, 2.50, null], "deep": {"deeper": {"deepest": true}}}'
LONG = "\n" + "".join(f"line {number}\n" for number in range(2, 1001))
TABLE = 'name,notes\nAda,"first, of all"\nGrace,"two\nlines"\n'


def png(width: int, height: int) -> bytes:
    """Return a PNG image in one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x2a\x7f\x62" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def add_resource(
    server: WebServerProcess, name: str, content: str | bytes, mime_type: str = "text/plain", **more: Any
) -> str:
    """Create a resource as an agent does; return its URI."""
    text = content if isinstance(content, str) else b64encode(content).decode()
    uri = more.pop("uri", f"note:///{name}")
    server.call("create_resource", name=name, uri=uri, content=text, mime_type=mime_type, **more)
    return str(uri)


def view_path(uri: str, tab: str = "") -> str:
    """Return the path of the page of a resource."""
    return f"{RESOURCES}/view?" + urlencode({"uri": uri} | ({"tab": tab} if tab else {}))


def download(page: Page, server: WebServerProcess, uri: str) -> bytes:
    """Return the current content of a resource."""
    return page.request.get(f"{server.origin}{RESOURCES}/download?" + urlencode({"uri": uri})).body()


def expect_status(windows: BrowserWindows, status: int) -> None:
    """Check that the browser logged a response with this status, and remove it from the problems."""
    others = [problem for problem in windows.problems if f"status of {status}" not in problem]
    assert len(others) < len(windows.problems)
    windows.problems[:] = others


@pytest.fixture(scope="module")
def sample_resources(server: WebServerProcess) -> dict[str, str]:
    """Create a resource of each type with its own preview; return their URIs by name."""
    uris = {
        name: add_resource(server, name, content, kind, description=f"A resource of type {kind}")
        for name, kind, content in (
            ("guide.md", "text/markdown", GUIDE),
            ("data.json", "application/json", DATA),
            ("table.csv", "text/csv", TABLE),
            ("picture.png", "image/png", png(320, 180)),
            ("code.py", "text/x-python", "def answer():\n    return 42\n"),
            ("page.html", "text/html", "<h1 id=planted>Hello</h1><script>document.title = 'run'</script>"),
            ("drawing.svg", "image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"),
            ("paper.pdf", "application/pdf", b"%PDF-1.4"),
            ("fake.png", "image/png", b"<script>alert(1)</script>"),
            ("broken.json", "application/json", '{"a": '),
            # Slow to highlight with a naive lexer.
            ("busy.c", "text/x-c", "\n " * 190 + "<b>"),
            ("long.txt", "text/plain", LONG),
        )
    }
    uris["letter"] = add_resource(
        server,
        "letter",
        "# For {{ name }}\n\nAbout {{ topic }}.",
        "text/markdown",
        uri="note:///{name}/{topic}",
    )
    return uris


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
def test_resource_pages_are_accessible_on_every_screen(
    server: WebServerProcess,
    windows: BrowserWindows,
    check_page: PageCheck,
    sample_resources: dict[str, str],
    screen: Screen,
) -> None:
    page = windows.open(server, RESOURCES, screen)
    check_page(page, f"list-{screen.name}")
    page.goto(server.origin + view_path(sample_resources["guide.md"]))
    check_page(page, f"markdown-{screen.name}")
    page.goto(server.origin + view_path(sample_resources["data.json"], "history"))
    check_page(page, f"history-{screen.name}")
    page.goto(f"{server.origin}{RESOURCES}/new")
    page.get_by_label("Name").fill("not a name")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("alert").wait_for()
    check_page(page, f"form-{screen.name}")
    expect_status(windows, 422)


def test_other_previews_are_accessible(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck, sample_resources: dict[str, str]
) -> None:
    page = windows.open(server, view_path(sample_resources["data.json"]), SCREENS[0])
    for name in ("data.json", "table.csv", "picture.png", "letter"):
        page.goto(server.origin + view_path(sample_resources[name]))
        check_page(page, f"{name}-{SCREENS[0].name}")
    page.goto(server.origin + view_path(sample_resources["guide.md"], "agent"))
    check_page(page, f"agent-{SCREENS[0].name}")


def test_the_preview_depends_on_the_type(
    server: WebServerProcess, windows: BrowserWindows, sample_resources: dict[str, str]
) -> None:
    page = windows.open(server, view_path(sample_resources["guide.md"]), own=True)
    preview = page.locator("#resource .card")
    expect(preview.get_by_role("heading", name="Guide")).to_be_visible()
    expect(preview.locator("td").first).to_have_text("1")
    expect(preview.locator(".code .k").first).to_have_text("def")
    expect(preview).to_contain_text("<script>alert(1)</script>")

    page.goto(server.origin + view_path(sample_resources["data.json"]))
    expect(page.get_by_text("deepest")).to_be_hidden()
    page.get_by_text("deeper: 1 member").click()
    expect(page.get_by_text("deepest")).to_be_visible()
    expect(page.locator(".tree .number").nth(1)).to_have_text("2.50")

    page.goto(server.origin + view_path(sample_resources["table.csv"]))
    expect(page.get_by_role("columnheader", name="notes")).to_be_visible()
    expect(page.get_by_role("cell", name="first, of all")).to_be_visible()
    assert page.get_by_role("row").count() == 3

    page.goto(server.origin + view_path(sample_resources["picture.png"]))
    picture = page.get_by_role("img", name="A resource of type image/png")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => [image.naturalWidth, image.naturalHeight]") == [320, 180]

    page.goto(server.origin + view_path(sample_resources["busy.c"]))
    assert page.locator("#resource pre").text_content() == "\n " * 190 + "<b>"

    page.goto(server.origin + view_path(sample_resources["broken.json"]))
    expect(page.get_by_text("This is not valid JSON (line 1)")).to_be_visible()

    page.goto(server.origin + view_path(sample_resources["long.txt"]))
    expect(page.get_by_text("Showing the first 400 of 1,000 lines.")).to_be_visible()
    page.get_by_role("link", name="Source", exact=True).click()
    assert str(page.locator("#source").text_content()) == LONG
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == LONG

    page.goto(server.origin + view_path(sample_resources["guide.md"], "agent"))
    shown = json.loads(page.locator(".code").inner_text())
    assert shown == {
        "contents": [{"uri": sample_resources["guide.md"], "mimeType": "text/markdown", "text": GUIDE}]
    }


def test_resource_content_never_runs(
    server: WebServerProcess, windows: BrowserWindows, sample_resources: dict[str, str]
) -> None:
    page = windows.open(server, view_path(sample_resources["page.html"]))
    expect(page.locator("#resource .code")).to_contain_text("document.title = 'run'")
    assert page.locator("#planted").count() == 0
    assert page.title() == "page.html · Dittybag"

    def headers(action: str, name: str) -> dict[str, str]:
        response = page.request.get(
            f"{server.origin}{RESOURCES}/{action}?" + urlencode({"uri": sample_resources[name]})
        )
        assert response.status == 200
        return response.headers

    for name in ("page.html", "drawing.svg", "paper.pdf", "fake.png", "guide.md"):
        raw = headers("raw", name)
        assert raw["content-type"] == "application/octet-stream"
        assert raw["content-disposition"] == f'attachment; filename="{name}"'
    picture = headers("raw", "picture.png")
    assert (picture["content-type"], picture["content-disposition"]) == ("image/png", "inline")
    assert headers("download", "picture.png")["content-type"] == "application/octet-stream"
    for found in (raw, picture):
        assert "sandbox; default-src 'none'" in found["content-security-policy"]
        assert found["x-content-type-options"] == "nosniff"
    page.goto(server.origin + view_path(sample_resources["fake.png"]))
    expect(page.get_by_text("No preview is available for this type: image/png")).to_be_visible()


def test_a_resource_is_created_edited_deleted_and_restored(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(server, RESOURCES)
    page.keyboard.press("n")
    page.get_by_label("Name").fill("my notes")
    page.get_by_label("Content").fill("\n  First\nSecond <b>\n")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#problem-name")).to_contain_text("contains invalid characters")
    expect_status(windows, 422)
    assert page.get_by_label("Content").input_value() == "\n  First\nSecond <b>\n"
    page.get_by_label("Name").fill("notes.md")
    page.get_by_label("Title").fill("My notes")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="My notes")).to_be_visible()
    expect(page.get_by_text("Created notes.md")).to_be_visible()
    assert download(page, server, "dittybag://resources/notes.md") == b"\n  First\nSecond <b>\n"
    expect(page.locator(".traits")).to_contain_text("text/markdown")

    page.keyboard.press("e")
    page.get_by_label("Name").fill("diary.md")
    page.get_by_label("URI").fill("note:///diary")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("note:///diary")).to_be_visible()
    assert download(page, server, "note:///diary") == b"\n  First\nSecond <b>\n"

    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleted diary.md")).to_be_visible()
    expect(page.locator("#resources")).not_to_contain_text("diary.md")
    # The key means Undo while there is a toast, and Upload otherwise.
    page.keyboard.press("u")
    expect(page.get_by_text("Restored “diary.md”")).to_be_visible()
    expect(page.locator("#resources")).to_contain_text("diary.md")
    assert download(page, server, "note:///diary") == b"\n  First\nSecond <b>\n"


def test_conflicting_edits_are_shown_and_resolved(
    server: WebServerProcess, windows: BrowserWindows, check_page: PageCheck, sample_resources: dict[str, str]
) -> None:
    uri = add_resource(server, "shared.txt", "one\r\ntwo\r\n")
    page = windows.open(server, view_path(uri))
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Content").fill("one\nmine\n")
    server.call("update_resource", name="shared.txt", content="theirs\r\ntwo\r\n", client="cursor")
    expect(page.get_by_role("alert")).to_contain_text(
        "cursor changed this resource while you were editing it"
    )
    assert page.get_by_label("Content").input_value() == "one\nmine\n"

    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="cursor saved first")).to_be_visible()
    expect_status(windows, 409)
    both = page.get_by_role("region", name="Content")
    expect(both.locator(".removed")).to_have_text(["removed: theirs", "removed: two"])
    assert page.get_by_role("textbox", name="Content").input_value() == "one\nmine\n"
    check_page(page, "conflict-1440-light")
    page.get_by_role("button", name="Overwrite with my version").first.click()
    expect(page.get_by_text("Saved")).to_be_visible()
    # The resource keeps its line endings.
    assert download(page, server, uri) == b"one\r\nmine\r\n"

    page.get_by_role("link", name="History").click()
    expect(page.locator(".versions li")).to_have_count(3)
    expect(page.locator(".versions li").nth(1)).to_contain_text("changed (content) by cursor")
    page.get_by_role("link", name="Version 2").click()
    expect(page.locator(".diff .added")).to_contain_text("theirs")
    page.get_by_role("button", name="Restore version 2").click()
    expect(page.get_by_text("Restored version 2 as a new version")).to_be_visible()
    assert download(page, server, uri) == b"theirs\r\ntwo\r\n"


def test_unsaved_text_survives_a_deletion(server: WebServerProcess, windows: BrowserWindows) -> None:
    uri = add_resource(server, "fleeting.txt", "old")
    page = windows.open(server, view_path(uri))
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Content").fill("much work")
    server.call("delete_resource", name="fleeting.txt")
    expect(page.get_by_role("alert")).to_contain_text("deleted this resource while you were editing it")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("If you save now, it is created again.")).to_be_visible()
    expect_status(windows, 409)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Created fleeting.txt")).to_be_visible()
    assert download(page, server, uri) == b"much work"


def test_several_files_are_uploaded_at_once(
    server: WebServerProcess, windows: BrowserWindows, tmp_path: Path
) -> None:
    page = windows.open(server, RESOURCES)
    picture, table, large = tmp_path / "a picture.png", tmp_path / "t.tsv", tmp_path / "large.bin"
    picture.write_bytes(png(2, 2))
    table.write_text("a\tb\n")
    large.write_bytes(b"\0" * (4 * 1024 * 1024 + 1))
    page.get_by_label("Upload files").set_input_files([picture, table, large])
    uploads = page.get_by_role("list", name="Uploads").locator("li")
    expect(uploads).to_have_text(
        ["a-picture.pngAdded", "t.tsvAdded", "large.binThe file is too large: 4 MiB (maximum 4 MiB)."]
    )
    expect(page.locator("[data-list]").get_by_role("link", name="a-picture.png", exact=True)).to_be_visible()
    assert download(page, server, "dittybag://resources/a-picture.png") == png(2, 2)

    # A second file with the same name does not overwrite the first without confirmation.
    transfer = page.evaluate_handle("new DataTransfer()")
    transfer.evaluate("transfer => transfer.items.add(new File(['new\\n'], 't.tsv'))")
    page.dispatch_event("main", "drop", {"dataTransfer": transfer})
    expect(uploads.last).to_contain_text("Resource 't.tsv' already exists")
    expect_status(windows, 409)
    assert download(page, server, "dittybag://resources/t.tsv") == b"a\tb\n"
    page.get_by_role("button", name="Replace the content of t.tsv").click()
    expect(uploads.last).to_have_text("t.tsvReplaced")
    assert download(page, server, "dittybag://resources/t.tsv") == b"new\n"


def test_a_file_replaces_the_content_of_a_resource(
    server: WebServerProcess, windows: BrowserWindows, tmp_path: Path
) -> None:
    uri = add_resource(server, "replaced.txt", "old")
    page = windows.open(server, view_path(uri))
    file = tmp_path / "other.bin"
    file.write_bytes(b"\xff\xfe")
    page.get_by_label("Choose a file").set_input_files(file)
    expect(page.get_by_text("Content must be UTF-8 text, because text/plain is a text type")).to_be_visible()
    expect_status(windows, 422)
    file.write_text("new")
    page.get_by_label("Choose a file").set_input_files(file)
    expect(page.locator("#resource pre")).to_have_text("new")
    assert download(page, server, uri) == b"new"


def test_an_upload_without_the_form_secret_or_too_large_is_rejected(
    server: WebServerProcess, windows: BrowserWindows
) -> None:
    page = windows.open(server, RESOURCES)
    url = f"{server.origin}{RESOURCES}/upload?name=planted.txt"
    assert page.request.post(url, data=b"x").status == 403
    secret = page.locator('meta[name="form-secret"]').get_attribute("content") or ""
    # It is rejected before the body is sent.
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.putrequest("POST", f"{RESOURCES}/upload?name=planted.txt")
    cookies = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in page.context.cookies())
    size = 4 * 1024 * 1024 + 1
    for name, value in (("Cookie", cookies), ("X-Form-Secret", secret), ("Content-Length", str(size))):
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
    page.reload()
    expect(page.locator("#resources")).not_to_contain_text("planted.txt")


def test_a_template_is_rendered_with_its_arguments(
    server: WebServerProcess, windows: BrowserWindows, sample_resources: dict[str, str]
) -> None:
    page = windows.open(server, view_path(sample_resources["letter"]))
    page.get_by_label("name").fill("Ada & Bob/{x}")
    expect(page.locator("#rendered")).to_contain_text("Still needed: topic")
    page.get_by_label("topic").fill("engines")
    rendered = page.locator("#rendered")
    expect(rendered.get_by_role("heading", name="For Ada & Bob/{x}")).to_be_visible()
    expect(rendered).to_contain_text("note:///Ada%20%26%20Bob%2F%7Bx%7D/engines")


def test_the_list_is_filtered_sorted_and_updated_live(
    server: WebServerProcess, windows: BrowserWindows, sample_resources: dict[str, str]
) -> None:
    page = windows.open(server, RESOURCES)
    names = page.locator("[data-list] a[data-item]")
    page.get_by_label("Filter resources").fill("NOTE:///Data")
    expect(names).to_have_text(["data.json"])
    add_resource(server, "more-data", "{}", "application/json", uri="note:///data/more")
    expect(names).to_have_text(["more-data", "data.json"])
    page.get_by_label("Filter resources").fill("")
    page.get_by_label("Type", exact=True).select_option("text/x-python")
    expect(names).to_have_text(["code.py"])
    assert "type=text%2Fx-python" in page.url
    page.get_by_label("Type", exact=True).select_option("")
    page.get_by_label("Sort").select_option("size")
    expect(names.first).to_have_text("long.txt")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="long.txt")).to_be_visible()
    server.call("update_resource", name="long.txt", content="short now")
    expect(page.locator("#resource pre")).to_have_text("short now")


def test_a_long_list_is_paged(server: WebServerProcess, windows: BrowserWindows) -> None:
    for number in range(51):
        add_resource(server, f"many-{number:02}", "x")
    page = windows.open(server, f"{RESOURCES}?q=many-&sort=name")
    names = page.locator("[data-list] a[data-item]")
    expect(names).to_have_count(50)
    page.get_by_role("link", name="Next").click()
    expect(names).to_have_text(["many-50"])
    page.get_by_role("link", name="Previous").click()
    expect(names.first).to_have_text("many-00")
