"""What a client is told that has no good token, to the letter."""

from __future__ import annotations

import json

import pytest

from dittybag.identity import challenge, metadata_url, protected_resource_metadata

METADATA = "https://dittybag.example.com/.well-known/oauth-protected-resource/mcp"


def test_who_has_no_token_is_told_where_to_get_one() -> None:
    assert challenge(metadata_url=METADATA) == f'Bearer resource_metadata="{METADATA}"'.encode()


def test_who_has_none_may_be_told_what_to_ask_for() -> None:
    said = challenge(metadata_url=METADATA, scope="dittybag:read dittybag:write")
    assert said == f'Bearer scope="dittybag:read dittybag:write", resource_metadata="{METADATA}"'.encode()


def test_who_has_a_bad_one_is_told_so() -> None:
    said = challenge(metadata_url=METADATA, error="invalid_token")
    assert said == f'Bearer error="invalid_token", resource_metadata="{METADATA}"'.encode()


def test_who_may_not_do_this_is_told_what_is_missing() -> None:
    said = challenge(metadata_url=METADATA, error="insufficient_scope", scope="dittybag:admin")
    assert said == (
        f'Bearer error="insufficient_scope", scope="dittybag:admin", resource_metadata="{METADATA}"'.encode()
    )


def test_the_scheme_never_stands_alone() -> None:
    assert challenge(metadata_url=None) == b'Bearer realm="dittybag"'
    assert challenge(metadata_url=None, error="invalid_token") == b'Bearer error="invalid_token"'


@pytest.mark.parametrize("text", ['a"b', "a\\b", "a\r\nX: y", "a\0", "é", "", "a\x7f", "a\t"])
def test_nothing_breaks_out_of_its_quotes(text: str) -> None:
    for arguments in ({"metadata_url": text}, {"metadata_url": None, "error": text}):
        with pytest.raises(ValueError, match="cannot be said in a header"):
            challenge(**arguments)
    with pytest.raises(ValueError, match="cannot be said in a header"):
        challenge(metadata_url=None, scope=text)


def test_the_metadata_says_who_gives_out_tokens() -> None:
    said = protected_resource_metadata(
        "https://dittybag.example.com/mcp",
        ["https://login.example.com/realms/team"],
        ["dittybag:read", "dittybag:write", "dittybag:admin"],
    )
    assert said == (
        b'{"resource":"https://dittybag.example.com/mcp",'
        b'"authorization_servers":["https://login.example.com/realms/team"],'
        b'"scopes_supported":["dittybag:read","dittybag:write","dittybag:admin"],'
        b'"bearer_methods_supported":["header"],"resource_name":"Dittybag"}'
    )


def test_the_metadata_has_no_empty_lists() -> None:
    assert json.loads(protected_resource_metadata("https://dittybag.example.com", [], [])) == {
        "resource": "https://dittybag.example.com",
        "bearer_methods_supported": ["header"],
        "resource_name": "Dittybag",
    }


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("https://dittybag.example.com/mcp", METADATA),
        ("https://dittybag.example.com", METADATA.removesuffix("/mcp")),
        ("https://dittybag.example.com/", METADATA.removesuffix("/mcp")),
        ("http://127.0.0.1:8765/mcp", "http://127.0.0.1:8765/.well-known/oauth-protected-resource/mcp"),
        ("https://example.com/a/b?c=d", "https://example.com/.well-known/oauth-protected-resource/a/b?c=d"),
    ],
)
def test_the_metadata_is_where_rfc_9728_says(resource: str, expected: str) -> None:
    assert metadata_url(resource) == expected
