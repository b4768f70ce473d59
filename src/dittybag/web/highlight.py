"""Syntax highlighting with a time limit.

Lexers are regular expressions, and many need quadratic time for hostile input.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from html import escape
from typing import Any, Final

#: CPU time for all code blocks of one text.
_SECONDS: Final = 0.05
#: Texts with longer lines are not highlighted: they are usually generated, and slow to match.
_MAX_LINE_LENGTH: Final = 1000
_MAX_LENGTH: Final = 50_000


@cache
def languages() -> frozenset[str]:
    """Return the names of all languages that can be highlighted."""
    from pygments.lexers import get_all_lexers

    return frozenset(alias for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases)


class Highlighter:
    """Highlights the code blocks of one text within a shared time limit."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._until = time.thread_time() + seconds

    def highlight(self, text: str, language: str) -> str:
        """Return HTML with Pygments classes; the text is only escaped once the time limit is reached."""
        lexer = self._lexer(text, language)
        if lexer is None:
            return escape(text)
        from pygments import format as formatted
        from pygments.formatters.html import HtmlFormatter

        html = str(formatted(self._tokens(lexer, text), HtmlFormatter(nowrap=True)))
        return html if text.endswith("\n") else html.removesuffix("\n")

    def _lexer(self, text: str, language: str) -> Any:
        """Return the lexer, or None if the text is not highlighted."""
        language = language.lower()
        if language not in languages() or len(text) > _MAX_LENGTH or time.thread_time() > self._until:
            return None
        if any(len(line) > _MAX_LINE_LENGTH for line in text.split("\n")):
            return None
        from pygments.lexers import get_lexer_by_name

        return get_lexer_by_name(language, stripnl=False, ensurenl=False)

    def _tokens(self, lexer: Any, text: str) -> Iterator[tuple[Any, str]]:
        from pygments.token import Text

        # Pygments normalises line breaks in the same way.
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        done = 0
        for kind, value in lexer.get_tokens(text):
            yield kind, value
            done += len(value)
            if time.thread_time() > self._until:
                yield Text, text[done:]
                return
