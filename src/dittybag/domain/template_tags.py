"""The tags of a template in a text, found without the template engine."""

from __future__ import annotations

from typing import Final

#: An expression or a statement. Its length is limited, so that searching takes linear time.
TEMPLATE_TAG: Final = r"(?s)\{[{%].{0,500}?[%}]\}"

#: An expression that is only a variable, such as `{{ name }}`, perhaps with a filter.
TEMPLATE_VARIABLE: Final = r"\{\{-?\s*([A-Za-z_]\w*)\s*(?:\|[^{}]*)?-?\}\}"
