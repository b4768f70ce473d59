"""The command that renders a prompt in a shell, with the values of a form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Final

from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.domain.prompts import Argument

#: A longer value is read from a file.
_MAX_VALUE_LENGTH: Final = 400


def render_command(
    name: str, arguments: Sequence[Argument], values: Mapping[str, str], *, project: str = DEFAULT_PROJECT
) -> str:
    """Return the command line for a prompt. Required arguments without a value have a placeholder."""
    words = ["dittybag", "prompt", "render", quote(name)]
    for argument in arguments:
        value = values.get(argument.name, "")
        if len(value) > _MAX_VALUE_LENGTH:
            words.append(f'{argument.name}="$(cat FILE)"')
        elif value:
            words.append(f"{argument.name}={_quote(value)}")
        elif argument.required:
            words.append(f"{argument.name}=VALUE")
    return " ".join([*words, *([] if project == DEFAULT_PROJECT else ["--project", quote(project)])])


def _quote(value: str) -> str:
    """Quote a value for a shell, in double quotes if that is easier to read."""
    return f'"{value}"' if "'" in value and not re.search(r'["$`\\!]', value) else quote(value)
