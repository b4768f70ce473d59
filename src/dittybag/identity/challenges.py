"""The `WWW-Authenticate` header and the protected resource metadata (RFC 6750, RFC 9728)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"

#: Characters allowed in a quoted parameter: no quotes, backslashes or line breaks.
_QUOTABLE: Final = re.compile(r"[ !#-\[\]-~]+")


def protected_resource_metadata(
    resource: str, authorization_servers: Sequence[str], scopes: Sequence[str]
) -> bytes:
    """Return the metadata of this server as JSON. Empty lists are left out, as RFC 9728 requires."""
    lists = {
        "authorization_servers": list(authorization_servers),
        "scopes_supported": list(scopes),
        "bearer_methods_supported": ["header"],
    }
    filled = {name: values for name, values in lists.items() if values}
    return msgspec.json.encode({"resource": resource, **filled, "resource_name": "Dittybag"})


def metadata_url(resource: str) -> str:
    """Return the URL of a resource's metadata: for `https://host/mcp` it is `https://host/.well-known/…/mcp`."""
    parts = urlsplit(resource)
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}{query}"


def challenge(*, metadata_url: str | None, error: str | None = None, scope: str | None = None) -> bytes:
    """Return the value of `WWW-Authenticate`.

    Leave `error` out for a request without a token (RFC 6750, section 3.1). Raises `ValueError` for a value
    with characters that a header cannot hold.
    """
    parameters = {"error": error, "scope": scope, "resource_metadata": metadata_url}
    given = {name: value for name, value in parameters.items() if value is not None}
    for name, value in given.items():
        if not _QUOTABLE.fullmatch(value):
            raise ValueError(f"the {name} contains characters that a header cannot hold")
    # The scheme needs at least one parameter.
    shown = given or {"realm": "dittybag"}
    return ("Bearer " + ", ".join(f'{name}="{value}"' for name, value in shown.items())).encode()
