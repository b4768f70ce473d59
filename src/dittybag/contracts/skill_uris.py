"""The `skill://` URIs of the paths of skills and their files."""

from __future__ import annotations

from typing import Final

from dittybag.contracts.skill_extension import SCHEME

#: The characters that a part of a path may have unquoted, apart from letters, digits and `_.-~`.
_UNQUOTED: Final = "/!$&'()*+,;=:@"
#: Longer URIs belong to no file.
_MAX_LENGTH: Final = 16_384


def uri_of(path: str) -> str:
    """Return the URI of a path."""
    from urllib.parse import quote

    return SCHEME + quote(path, safe=_UNQUOTED)


def path_of(uri: str) -> str | None:
    """Return the path of a URI; `None` if it cannot be the URI of a skill or one of its files."""
    from urllib.parse import unquote

    rest = uri[len(SCHEME) :]
    if uri[: len(SCHEME)].lower() != SCHEME or len(uri) > _MAX_LENGTH or "?" in rest or "#" in rest:
        return None
    try:
        parts = [unquote(part, errors="strict") for part in rest.split("/")]
    except UnicodeDecodeError:
        return None
    return "/".join(parts) if all(map(_is_part, parts)) else None


def _is_part(part: str) -> bool:
    return part not in ("", ".", "..") and "/" not in part and "\\" not in part and part.isprintable()
