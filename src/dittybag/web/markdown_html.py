"""Stored text as HTML: Markdown and code, with nothing left in it that could run."""

from __future__ import annotations

from functools import cache
from html import escape
from threading import local
from typing import Any, Final

import nh3

from dittybag.web.highlight import Colours

#: Longer texts are shown as they are: hostile ones would take the better part of a second.
MAX_MARKDOWN: Final = 30_000

#: What colours the pieces of the text that this thread is at: all of them together have so much time.
_at = local()

_TAGS: Final = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
    "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES: Final = {"a": {"href", "title"}, "ol": {"start"}}


def markdown(text: str) -> str:
    """What Markdown means. HTML in it is shown, not obeyed, and pictures from elsewhere are not loaded."""
    if len(text) > MAX_MARKDOWN:
        return f"<pre>{escape(text)}</pre>"
    _at.colours = Colours()
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

    parser = MarkdownIt("commonmark", {"html": False, "highlight": _highlighted, "maxNesting": 20})
    return parser.enable(["table", "strikethrough"]).disable("image")


def _highlighted(text: str, language: str, _attributes: str) -> str:
    return _framed(_at.colours.of(text, language)) if language else ""


def code(text: str, language: str = "") -> str:
    """A text in colours, if its language is known: `<pre class="code">` with classes that the style knows."""
    return _framed(Colours().of(text, language))


def _framed(html: str) -> str:
    return f'<pre class="code"><code>{html}</code></pre>'


@cache
def _classes() -> set[str]:
    """The classes that colours go by."""
    from pygments.token import STANDARD_TYPES

    return {name for name in STANDARD_TYPES.values() if name}
