"""What a client without a good token is told: where to get one (RFC 6750, RFC 9728)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"

#: What may stand between the quotes of all three parameters; a header cannot be split with it.
_QUOTABLE: Final = re.compile(r"[ !#-\[\]-~]+")


def protected_resource_metadata(
    resource: str, authorization_servers: Sequence[str], scopes: Sequence[str]
) -> bytes:
    """The metadata of this server, as JSON. Lists with nothing in them are left out, as RFC 9728 asks."""
    lists = {
        "authorization_servers": list(authorization_servers),
        "scopes_supported": list(scopes),
        "bearer_methods_supported": ["header"],
    }
    filled = {name: values for name, values in lists.items() if values}
    return msgspec.json.encode({"resource": resource, **filled, "resource_name": "Dittybag"})


def metadata_url(resource: str) -> str:
    """Where the metadata of a resource is found: `https://host/mcp` has it below `/.well-known/…/mcp`."""
    parts = urlsplit(resource)
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}{query}"


def challenge(*, metadata_url: str | None, error: str | None = None, scope: str | None = None) -> bytes:
    """The value of `WWW-Authenticate`.

    A request without a token is told no error (RFC 6750, section 3.1). Raises `ValueError` for what cannot
    be said in a header.
    """
    parameters = {"error": error, "scope": scope, "resource_metadata": metadata_url}
    said = {name: value for name, value in parameters.items() if value is not None}
    for name, value in said.items():
        if not _QUOTABLE.fullmatch(value):
            raise ValueError(f"this {name} cannot be said in a header")
    # The scheme must be followed by something.
    words = said or {"realm": "dittybag"}
    return ("Bearer " + ", ".join(f'{name}="{value}"' for name, value in words.items())).encode()
