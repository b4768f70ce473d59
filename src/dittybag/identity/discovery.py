"""Finds an issuer's keys through the settings or its metadata (RFC 8414, OpenID Connect Discovery)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from dittybag.identity.bounded_fetch import describe_error, read
from dittybag.identity.identity_errors import FetchFailed
from dittybag.identity.oauth_settings import OAuthSettings
from dittybag.identity.strict_json import json_object
from dittybag.identity.url_rules import is_loopback, is_url, split_url

Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]


async def fetch_jwks(settings: OAuthSettings, fetch: Fetch) -> bytes:
    """Return the issuer's JWKS document. Raises `FetchFailed` and any exception of `fetch`."""
    if settings.jwks and not is_url(settings.jwks):
        return await read(settings.jwks)
    return await fetch(settings.jwks or await _discover_jwks_url(settings.issuer, fetch))


async def _discover_jwks_url(issuer: str, fetch: Fetch) -> str:
    problems: list[str] = []
    for url in metadata_urls(issuer):
        try:
            return _jwks_url_from(await fetch(url), issuer)
        except Exception as error:  # noqa: BLE001  # a custom `fetch` may raise anything
            problems.append(f"{url}: {describe_error(error)}")
    raise FetchFailed(f"no issuer metadata found ({'; '.join(problems)})")


def metadata_urls(issuer: str) -> list[str]:
    """Return the possible URLs of an issuer's metadata, in the order that MCP authorization requires."""
    parts = split_url(issuer)
    server, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    urls = [
        f"{server}/.well-known/oauth-authorization-server{path}",
        f"{server}/.well-known/openid-configuration{path}",
        f"{server}{path}/.well-known/openid-configuration",
    ]
    # Without a path the last two are the same.
    return list(dict.fromkeys(urls))


def _jwks_url_from(document: bytes, issuer: str) -> str:
    """Return the `jwks_uri` of issuer metadata. Raises `FetchFailed` if the metadata is not valid."""
    try:
        metadata = json_object(document)
        url = str(metadata.get("jwks_uri"))
        parts = split_url(url)
    except ValueError as error:
        raise FetchFailed(f"the metadata has no valid jwks_uri ({error})") from None
    if metadata.get("issuer") != issuer:
        raise FetchFailed("the metadata belongs to another issuer")
    # A remote issuer must not make this server call local services.
    if is_loopback(parts) and not is_loopback(split_url(issuer)):
        raise FetchFailed("the jwks_uri points to this machine")
    return url
