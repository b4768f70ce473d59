"""Rules for the URLs of issuers and their keys: https, or http on this machine."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

MAX_CHARACTERS: Final = 2000

_ALLOWED: Final = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")


def is_url(text: str) -> bool:
    """Return whether a setting is a URL rather than a file name."""
    return "://" in text


def split_url(url: str) -> SplitResult:
    """Return the parts of an allowed URL: https, or http on this machine. Raises `ValueError`."""
    if len(url) > MAX_CHARACTERS:
        raise ValueError(f"the URL is longer than {MAX_CHARACTERS} characters")
    if not _ALLOWED.fullmatch(url):
        raise ValueError("the URL contains characters that are not allowed")
    parts = urlsplit(url)
    if not parts.hostname or parts.port == 0:
        raise ValueError("the URL has no valid host and port")
    if "@" in parts.netloc:
        raise ValueError("the URL contains a user name")
    if "#" in url:
        raise ValueError("the URL contains a fragment (#)")
    if parts.scheme == "http" and not is_loopback(parts):
        raise ValueError("the URL must start with https:// (http:// is allowed only for this machine)")
    if parts.scheme not in ("http", "https"):
        raise ValueError("the URL must start with https://")
    return parts


def is_loopback(parts: SplitResult) -> bool:
    """Return whether the host is this machine."""
    from ipaddress import ip_address

    host = parts.hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def origin(parts: SplitResult) -> tuple[str, str | None, int]:
    """Return the scheme, host and port of a URL."""
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
