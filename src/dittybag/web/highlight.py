"""Code in colours, however hostile it is: what would take too long stays plain.

Lexers are regular expressions, and many of them take quadratic time for texts that are made for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from html import escape
from typing import Any, Final

#: Of computing, for all pieces of one text.
_SECONDS: Final = 0.05
#: A text with a longer line was not written by hand, and no lexer looks for its end so long in vain.
_LINE_LENGTH: Final = 1000
_LENGTH: Final = 50_000


class Colours:
    """Colours the pieces of one text, as long as that does not take too long."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._until = time.thread_time() + seconds

    def of(self, text: str, language: str) -> str:
        """HTML with classes that the style knows; only escaped from where it takes too long."""
        lexer = self._lexer(text, language)
        if lexer is None:
            return escape(text)
        from pygments import format as formatted
        from pygments.formatters.html import HtmlFormatter

        html = str(formatted(self._tokens(lexer, text), HtmlFormatter(nowrap=True)))
        return html if text.endswith("\n") else html.removesuffix("\n")

    def _lexer(self, text: str, language: str) -> Any:
        """Nothing if the text is not to be coloured."""
        if not language or len(text) > _LENGTH or time.thread_time() > self._until:
            return None
        if any(len(line) > _LINE_LENGTH for line in text.split("\n")):
            return None
        from pygments.lexers import get_lexer_by_name
        from pygments.util import ClassNotFound

        try:
            return get_lexer_by_name(language[:50], stripnl=False, ensurenl=False)
        except ClassNotFound:
            return None

    def _tokens(self, lexer: Any, text: str) -> Iterator[tuple[Any, str]]:
        from pygments.token import Text

        # As the lexer sees it.
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        done = 0
        for kind, value in lexer.get_tokens(text):
            yield kind, value
            done += len(value)
            if time.thread_time() > self._until:
                yield Text, text[done:]
                return
