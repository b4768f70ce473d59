"""The variables of a template, marked in its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from dittybag.domain.prompts import Argument
from dittybag.domain.template_tags import TEMPLATE_TAG

#: The rest of a longer text is not marked.
_MAX_MARKED: Final = 200_000
_WORD: Final = r"[A-Za-z_]\w*"


def mark_variables(text: str, arguments: Sequence[Argument]) -> str:
    """Return the HTML of a text in which expressions such as `{{ name }}` are marked.

    The mark of an argument has its description as a tooltip.
    """
    return "".join(_parts(text, {argument.name: argument for argument in arguments}))


def _parts(text: str, arguments: dict[str, Argument]) -> Iterator[str]:
    end = 0
    for tag in re.finditer(TEMPLATE_TAG, text[:_MAX_MARKED]):
        yield escape(text[end : tag.start()])
        yield _marked(tag[0], arguments)
        end = tag.end()
    yield escape(text[end:])


def _marked(tag: str, arguments: dict[str, Argument]) -> str:
    if not tag.startswith("{{"):
        return f'<span class="statement">{escape(tag)}</span>'
    words = re.findall(_WORD, tag)
    known = next((arguments[word] for word in words if word in arguments), None)
    if known is None:
        return f'<mark class="variable unknown" title="Not an argument">{escape(tag)}</mark>'
    about = known.description or "No description"
    title = f"{known.name} ({'required' if known.required else 'optional'}): {about}"
    return f'<mark class="variable" title="{escape(title)}">{escape(tag)}</mark>'
