"""Colours for the terminal, from the 256-colour palette.

Unlike the sixteen basic colours, they do not depend on the theme. Each has a contrast of at least 3.9 : 1 on
white and on black. Nothing is told by colour alone.
"""

from __future__ import annotations

from typing import Final

RED: Final = 196
AMBER: Final = 130
GREEN: Final = 28
TEAL: Final = 30
VIOLET: Final = 98
GREY: Final = 243
