"""The Markdown of a page: what GitHub shows in the repository, changed so that it is right on the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

#: Files of the site that are outside docs/, by their place in the repository.
INCLUDED: Final[Mapping[str, str]] = {
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "src/dittybag/web/static/icon.svg": "images/icon.svg",
}

_FENCE: Final = re.compile(r" *(`{3,}|~{3,})")
_NOT_RUN: Final = re.compile(r'^( *`{3,}\w+) not-run="[^"]*"$')
#: Not a heading, picture, table or comment, and not the note of a generated page.
_PROSE: Final = r"(?!This page is generated)[\w`*\[\"“]"
#: A summary of fewer characters says too little, as "Start with this." does.
_SHORT_SUMMARY: Final = 60
_LINK: Final = re.compile(r"(\]\()([^)\s#]+)([^)]*\))")


def repository_path(page: str) -> str:
    """Return where a page of the site is in the repository: `security.md` is `SECURITY.md`."""
    return next((path for path, name in INCLUDED.items() if name == page), f"docs/{page}")


def on_site(markdown: str, page: str, pages: Collection[str], repository: str) -> str:
    """Return the text of a page with the links of the site and without the marks of the tests.

    `pages`: the files of the site. Links to other files of the repository lead to the repository.
    """

    def link(match: re.Match[str]) -> str:
        return match[1] + _target(match[2], page, pages, repository) + match[3]

    return _map_lines(
        markdown, text=lambda line: _LINK.sub(link, line), fence=lambda line: _NOT_RUN.sub(r"\1", line)
    )


def _map_lines(markdown: str, *, text: Callable[[str], str], fence: Callable[[str], str]) -> str:
    """Change the lines of texts and the first lines of code blocks. Code stays as it is."""
    lines, closing = [], ""
    for line in markdown.split("\n"):
        mark = _FENCE.match(line)
        if closing:
            closing = "" if line.strip() == closing else closing
            lines.append(line)
        elif mark:
            closing = mark[1]
            lines.append(fence(line))
        else:
            lines.append(text(line))
    return "\n".join(lines)


def _target(target: str, page: str, pages: Collection[str], repository: str) -> str:
    if "://" in target or target.startswith("mailto:"):
        return target
    path = posixpath.normpath(posixpath.join(posixpath.dirname(repository_path(page)), target))
    name = INCLUDED.get(path, path.removeprefix("docs/"))
    if name in pages:
        return posixpath.relpath(name, posixpath.dirname(page) or ".")
    if not Path(path).exists():
        return target  # MkDocs reports it
    kind = "tree" if Path(path).is_dir() else "blob"
    return f"{repository}/{kind}/main/{path}"


def summary(markdown: str) -> str:
    """Return the first sentences below the heading, without markup: as few as make a description."""
    prose = re.sub(r"^(`{3,}).*?^\1$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", prose))
    first = next((part for part in paragraphs if re.match(_PROSE, part)), "")
    plain = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", first).replace("**", "").replace("`", "")
    text, *others = re.split(r"(?<=[.!?:]) ", plain)
    while others and len(text) < _SHORT_SUMMARY:
        text += f" {others.pop(0)}"
    return text.rstrip(":")
