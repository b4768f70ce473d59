"""Fitting: names and texts of other programs, made such that they can be ours."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from dittybag.domain.names import NAME_LENGTH
from dittybag.domain.prompts import DESCRIPTION_LENGTH, TAG_LENGTH, TITLE_LENGTH
from dittybag.domain.resources import URI_LENGTH, problems
from dittybag.domain.text import one_line

_OTHERS: Final = re.compile(r"[^A-Za-z0-9._-]+")
_NO_TAG: Final = re.compile(r"[^a-z0-9_-]+")
BINARY: Final = "application/octet-stream"


def fitted_name(name: str, otherwise: str) -> str:
    """A name with `-` for what may not be in one."""
    return _OTHERS.sub("-", name).strip("-")[:NAME_LENGTH] or otherwise


def fitted_title(title: str) -> str:
    """A title on one line, not too long."""
    return one_line(title, TITLE_LENGTH)


def fitted_tag(tag: str) -> str:
    """A tag with `-` for what may not be in one; nothing if nothing is left."""
    return _NO_TAG.sub("-", tag.lower()).strip("-")[:TAG_LENGTH]


def fitted_description(text: str | None) -> str | None:
    """A description that is not too long."""
    return text.replace("\0", "")[:DESCRIPTION_LENGTH] if text else None


def fitted_uri(uri: str) -> str:
    """A URI with a scheme and without blanks."""
    if not any(problems(uri=uri)):
        return uri
    fitted = quote(uri.strip(), safe="/:?#[]@!$&'()*+,;=%-._~")
    if any(problems(uri=fitted)):
        fitted = f"file:///{quote(uri.strip().lstrip('/'), safe='/')}"
    return fitted[:URI_LENGTH]
