"""`llms.txt` and `llms-full.txt`: the documentation for language models, in the format of llmstxt.org."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

from website.page_source import summary

#: The format's own name for links that may be left out.
OPTIONAL: Final = "Optional"


def index(nav: Navigation, name: str, description: str, site_url: str) -> str:
    """Return the links of all pages, by section of the navigation."""
    sections: dict[str, list[str]] = {}
    for section, page in _pages(nav):
        text = page.markdown or ""
        sections.setdefault(section, []).append(
            f"- [{page.title}]({site_url}{page.file.src_uri}): {summary(text)}"
        )
    optional = sections.pop(OPTIONAL, [])
    parts = [f"# {name}\n\n> {description}\n"]
    for section, links in [*sections.items(), *([(OPTIONAL, optional)] if optional else [])]:
        parts.append(f"## {section}\n\n" + "\n".join(links) + "\n")
    return "\n".join(parts)


def full_text(nav: Navigation, name: str, description: str) -> str:
    """Return the texts of all pages that are not optional."""
    texts = [(page.markdown or "").strip() for section, page in _pages(nav) if section != OPTIONAL]
    return "\n\n---\n\n".join([f"# {name}\n\n> {description}", *texts]) + "\n"


def _pages(nav: Navigation) -> Iterator[tuple[str, Page]]:
    """Yield all pages in order, with their section. Pages in a section of a section are optional."""
    for page in nav.pages:
        ancestors = [parent for parent in page.ancestors if isinstance(parent, Section)]
        yield OPTIONAL if len(ancestors) > 1 else ancestors[-1].title, page
