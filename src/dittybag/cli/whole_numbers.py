"""Click parameter type for integers with bounds."""

from __future__ import annotations

from typing import Final

import click

#: A longer number takes long to convert.
_MAX_DIGITS: Final = 100


class WholeNumber(click.ParamType[int, str]):
    """An integer from `least` to `most`; `None` for no upper bound."""

    name = "integer"

    def __init__(self, least: int, most: int | None) -> None:
        self._least = least
        self._most = most

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        digits = str(value)
        is_number = digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS
        if (
            not is_number
            or int(digits) < self._least
            or (self._most is not None and int(digits) > self._most)
        ):
            bounds = "or more" if self._most is None else f"to {self._most}"
            self.fail(f"must be an integer, {self._least} {bounds}", param, ctx)
        return int(digits)


#: The number of a change, a token and so on.
POSITIVE: Final = WholeNumber(1, None)
