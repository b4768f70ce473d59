"""Where an issuer's keys are: where the settings say, or its metadata (RFC 8414, OpenID discovery)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from dittybag.identity.bounded_fetch import read, reason
from dittybag.identity.identity_errors import FetchFailed
from dittybag.identity.oauth_settings import OAuthSettings
from dittybag.identity.strict_json import json_object
from dittybag.identity.url_rules import is_loopback, is_url, split_url

Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]


async def key_document(settings: OAuthSettings, fetch: Fetch) -> bytes:
    """The issuer's keys as it publishes them. Raises `FetchFailed`, and whatever `fetch` raises."""
    if settings.jwks and not is_url(settings.jwks):
        return await read(settings.jwks)
    return await fetch(settings.jwks or await _found_address(settings.issuer, fetch))


async def _found_address(issuer: str, fetch: Fetch) -> str:
    problems: list[str] = []
    for url in metadata_addresses(issuer):
        try:
            return _address_in(await fetch(url), issuer)
        except Exception as error:  # noqa: BLE001  # a fetch says in its own way that there is no such document
            problems.append(f"{url}: {reason(error)}")
    raise FetchFailed(f"its metadata cannot be had ({'; '.join(problems)})")


def metadata_addresses(issuer: str) -> list[str]:
    """Where an issuer's metadata may be, in the order in which MCP's authorization asks for it."""
    parts = split_url(issuer)
    server, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    addresses = [
        f"{server}/.well-known/oauth-authorization-server{path}",
        f"{server}/.well-known/openid-configuration{path}",
        f"{server}{path}/.well-known/openid-configuration",
    ]
    # Without a path the last two are the same.
    return list(dict.fromkeys(addresses))


def _address_in(document: bytes, issuer: str) -> str:
    """What the metadata says. Raises `FetchFailed` if it is not this issuer's."""
    try:
        metadata = json_object(document)
        address = str(metadata.get("jwks_uri"))
        parts = split_url(address)
    except ValueError as error:
        raise FetchFailed(f"it does not say where the keys are ({error})") from None
    if metadata.get("issuer") != issuer:
        raise FetchFailed("it is the metadata of another issuer")
    # An issuer elsewhere has no business on this machine.
    if is_loopback(parts) and not is_loopback(split_url(issuer)):
        raise FetchFailed("it says that the keys are on this machine")
    return address
