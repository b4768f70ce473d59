"""Converts stored Markdown and code to sanitised HTML."""

from __future__ import annotations

from functools import cache
from html import escape
from threading import local
from typing import Any, Final

import nh3

from dittybag.web.highlight import Highlighter

#: Longer texts are shown as plain text: hostile ones could take most of a second to convert.
MAX_MARKDOWN: Final = 30_000

#: The highlighter of the text that this thread converts; its code blocks share one time limit.
_current = local()

_TAGS: Final = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
    "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES: Final = {"a": {"href", "title"}, "ol": {"start"}}


def markdown(text: str) -> str:
    """Convert Markdown to HTML. Embedded HTML is escaped, and images are not loaded."""
    if len(text) > MAX_MARKDOWN:
        return f"<pre>{escape(text)}</pre>"
    _current.highlighter = Highlighter()
    html: str = _parser().render(text)
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        allowed_classes={"span": _classes(), "pre": {"code"}, "code": set()},
    )


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "highlight": _highlight_block, "maxNesting": 20})
    return parser.enable(["table", "strikethrough"]).disable("image")


def _highlight_block(text: str, language: str, _attributes: str) -> str:
    return _code_block(_current.highlighter.highlight(text, language)) if language else ""


def code(text: str, language: str = "") -> str:
    """Return a code block, highlighted if the language is known."""
    return _code_block(Highlighter().highlight(text, language))


def _code_block(html: str) -> str:
    return f'<pre class="code"><code>{html}</code></pre>'


@cache
def _classes() -> set[str]:
    """The CSS classes that Pygments uses."""
    from pygments.token import STANDARD_TYPES

    return {name for name in STANDARD_TYPES.values() if name}
