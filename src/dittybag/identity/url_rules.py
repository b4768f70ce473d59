"""Addresses of issuers and their keys: which may be asked at all."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

MOST_CHARACTERS: Final = 2000

_ALLOWED: Final = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")


def is_url(text: str) -> bool:
    """It is meant to be an address, not the name of a file."""
    return "://" in text


def split_url(url: str) -> SplitResult:
    """The parts of an address that may be asked: https, or http on this machine. Raises `ValueError`."""
    if len(url) > MOST_CHARACTERS:
        raise ValueError(f"the address has more than {MOST_CHARACTERS} characters")
    if not _ALLOWED.fullmatch(url):
        raise ValueError("the address has characters in it that no address has")
    parts = urlsplit(url)
    if not parts.hostname or parts.port == 0:
        raise ValueError("the address names no server")
    if "@" in parts.netloc:
        raise ValueError("the address has a user name in it")
    if "#" in url:
        raise ValueError("the address has a fragment (#) in it")
    if parts.scheme == "http" and not is_loopback(parts):
        raise ValueError("the address must begin with https:// (http:// is for this machine only)")
    if parts.scheme not in ("http", "https"):
        raise ValueError("the address must begin with https://")
    return parts


def is_loopback(parts: SplitResult) -> bool:
    """The server is on this machine."""
    from ipaddress import ip_address

    host = parts.hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def origin(parts: SplitResult) -> tuple[str, str | None, int]:
    """Which server an address is on."""
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
