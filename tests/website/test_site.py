"""The site of the documentation: every link leads somewhere, and nothing comes from another host."""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes of tags that make a browser load something.
LOADED = re.compile(
    r'<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc(?:set)?="([^"]*)"'
    r'|<link\b(?=[^>]*\brel="(?:stylesheet|icon|preload|preconnect|dns-prefetch|modulepreload)")[^>]*?\bhref="([^"]*)"'
)
#: What style sheets load.
STYLED = re.compile(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)")
LINK = re.compile(r'<a\b[^>]*?\bhref="([^"]*)"')
ANCHOR = re.compile(r'\b(?:id|name)="([^"]+)"')
#: The error page is for a server whose top is that of the site.
ERROR_PAGE = "404.html"


def _pages(site: Path) -> list[Path]:
    return sorted(page for page in site.rglob("*.html") if page.name != ERROR_PAGE)


@cache
def _anchors(page: Path) -> frozenset[str]:
    return frozenset(map(unescape, ANCHOR.findall(page.read_text())))


def _problem(page: Path, target: str) -> str | None:
    """Return what is wrong with a link within the site, or `None`."""
    parts = urlsplit(unescape(target))
    if parts.scheme or parts.netloc:
        return None
    file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if file.is_dir():
        file /= "index.html"
    if not file.is_file():
        return f"{target}: there is no such file"
    # Material for MkDocs keeps its own state in anchors that begin with two underscores.
    anchor = unquote(parts.fragment)
    if anchor and not anchor.startswith("__") and file.suffix == ".html" and anchor not in _anchors(file):
        return f"{target}: there is no such anchor"
    return None


def test_every_link_leads_to_a_file_and_an_anchor(site: Path) -> None:
    checked = 0
    for page in _pages(site):
        for target in set(LINK.findall(page.read_text())):
            assert _problem(page, target) is None, (page.relative_to(site), _problem(page, target))
            checked += 1
    assert checked > 5_000


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    loaded = 0
    for page in [*_pages(site), site / ERROR_PAGE]:
        for found in LOADED.findall(page.read_text()):
            target = unescape("".join(found))
            assert not urlsplit(target).netloc, (page.relative_to(site), target)
            assert page.name == ERROR_PAGE or _problem(page, target.partition("#")[0]) is None, target
            loaded += 1
    for sheet in site.rglob("*.css"):
        for target in map("".join, STYLED.findall(sheet.read_text())):
            assert target.startswith("data:") or not urlsplit(target).netloc, (sheet.name, target[:100])
    assert loaded > 500


def test_every_page_has_a_title_and_a_description_of_its_own(site: Path) -> None:
    titles: dict[str, Path] = {}
    for page in _pages(site):
        head = page.read_text().partition("</head>")[0]
        title = unescape(head.partition("<title>")[2].partition("</title>")[0])
        assert title not in titles, (title, page, titles[title])
        titles[title] = page
        description = re.search(r'<meta name="description" content="([^"]+)"', head)
        assert description, page
        assert len(description[1]) > 15, (page, description[1])


def test_the_texts_for_language_models_have_every_page(site: Path) -> None:
    index, full = (site / "llms.txt").read_text(), (site / "llms-full.txt").read_text()
    listed = set(re.findall(r"^- \[[^]]+\]\(([^)]+\.md)\): \S", index, re.MULTILINE))
    assert listed == {file.relative_to(site).as_posix() for file in site.rglob("*.md")}
    optional = set(re.findall(r"\(([^)]+\.md)\)", index.partition("## Optional")[2]))
    assert all(name.startswith("decisions/") for name in optional)
    for name in listed - optional:
        assert (site / name).read_text().strip() in full, name
    assert "```sh not-run" not in full
