"""Resources: text or binary content with a URI or URI template."""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from functools import partial
from typing import Any, Final

from msgspec import Struct

from dittybag.domain.errors import Check, Problem, clip, field_problems
from dittybag.domain.names import name_problem
from dittybag.domain.prompts import description_problem, size_problem, title_problem
from dittybag.domain.text import body_problem, line_problem

CONTENT_BYTES: Final = 4 * 1024 * 1024
URI_LENGTH: Final = 2048
DEFAULT_MIME_TYPE: Final = "text/plain"

_URI: Final = r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x20\x7f-\x9f\"<>\\^`]+"
_MIME_TYPE: Final = r"[A-Za-z0-9!#$&^_.+-]{1,63}/[A-Za-z0-9!#$&^_.+-]{1,63}(?:\s*;[ -~]{1,128})?"
_VARIABLE: Final = r"\{([A-Za-z0-9_.]+)\}"
_TEXT_TYPE: Final = (
    r"text/.*|application/(?:.*[+.-])?(?:json|jsonl|ndjson|json5|xml|yaml|toml|sql|javascript|ecmascript"
    r"|typescript|x-sh|x-shellscript|x-python|x-httpd-php|graphql|rtf|x-www-form-urlencoded|x-tex|x-ndjson)"
    r"|image/svg\+xml|message/.*|model/(?:gltf\+json|obj)"
)
_WHITESPACE: Final = str.maketrans("", "", " \t\r\n")


class Resource(Struct, frozen=True, kw_only=True):
    """A resource without its content, which is stored under its SHA-256."""

    #: Position in creation order; 0 until the resource is stored.
    number: int
    id: str
    project: int
    name: str
    uri: str
    title: str | None = None
    description: str | None = None
    mime_type: str
    sha256: str
    size: int
    created_at: int
    updated_at: int
    version: int = 1

    @property
    def is_text(self) -> bool:
        return is_text(self.mime_type)

    @property
    def is_template(self) -> bool:
        return is_template(self.uri)


def is_template(uri: str) -> bool:
    """Return whether a URI has variables, so that the content is a template."""
    return "{" in uri


def is_text(mime_type: str) -> bool:
    """Return whether a type is text. The content of other types is base64 in the API."""
    return re.fullmatch(_TEXT_TYPE, mime_type.partition(";")[0].strip().lower()) is not None


def problems(**fields: Any) -> list[Problem]:
    """Return all problems with the given fields. A valid MIME type decides how content is checked."""
    mime_type = fields.get("mime_type")
    if mime_type is not None and _mime_type_problem(mime_type):
        fields["content"] = None
    return field_problems(_CHECKS | {"content": partial(_content_problem, mime_type=mime_type)}, fields)


def _mime_type_problem(mime_type: str) -> str | None:
    if re.fullmatch(_MIME_TYPE, mime_type):
        return None
    return f"MIME type '{clip(mime_type, 60)}' is not valid: it must look like text/plain"


def _title_problem(title: str) -> str | None:
    return title_problem(title) or line_problem("Title", title)


def _uri_problem(uri: str) -> str | None:
    if not 1 <= len(uri) <= URI_LENGTH:
        return f"URI must be 1-{URI_LENGTH} characters"
    if not re.fullmatch(_URI, uri):
        return (
            f"URI '{clip(uri, 60)}' is not a valid URI: it needs a scheme, as in file:///notes.md, "
            "and must not contain spaces or control characters"
        )
    return _template_problem(uri)


def _template_problem(uri: str) -> str | None:
    """Return the problem with the `{variables}` of a URI (RFC 6570, level 1), or `None`."""
    parts = re.split(_VARIABLE, uri)
    literals, names = parts[::2], parts[1::2]
    shown = clip(uri, 60)
    if any("{" in literal or "}" in literal for literal in literals):
        return (
            f"URI '{shown}' has braces that are not simple {{variables}}; write literal braces as %7B and %7D"
        )
    if len(set(names)) != len(names):
        return f"URI '{shown}' uses a variable twice"
    if any(not literal for literal in literals[1:-1]):
        return f"URI '{shown}' must have text between its variables"
    return None


def _content_problem(content: str, mime_type: str | None) -> str | None:
    if mime_type is None or is_text(mime_type):
        return size_problem(len(content.encode()), CONTENT_BYTES) or body_problem("Content", content)
    try:
        return size_problem(len(decode_base64(content)), CONTENT_BYTES)
    except ValueError:
        return f"Content must be valid base64, because {mime_type} is a binary type"


_CHECKS: Final[dict[str, Check]] = {
    "name": partial(name_problem, "Resource"),
    "uri": _uri_problem,
    "content": partial(_content_problem, mime_type=None),
    "mime_type": _mime_type_problem,
    "description": description_problem,
    "title": _title_problem,
}


def decode_base64(content: str) -> bytes:
    """Decode base64, which may contain whitespace. Raises `ValueError`."""
    try:
        return a2b_base64(content.translate(_WHITESPACE).encode("ascii"), strict_mode=True)
    except (Base64Error, UnicodeEncodeError) as error:
        raise ValueError("not base64") from error


def content_bytes(content: str, mime_type: str) -> bytes:
    """Return the bytes to store for valid content of this type."""
    return content.encode() if is_text(mime_type) else decode_base64(content)
