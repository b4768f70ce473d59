"""Templates: texts with `{{ placeholders }}` for values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_PLACEHOLDER: Final = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_.]*)\s*\}\}")


def filled(template: str, values: Mapping[str, str]) -> str:
    """The template with its placeholders replaced, once: values are data. One without a value is empty."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], ""), template)
