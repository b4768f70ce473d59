"""The exact `WWW-Authenticate` headers and metadata for clients without a valid token."""

from __future__ import annotations

import json

import pytest

from dittybag.identity.challenges import challenge, metadata_url, protected_resource_metadata

METADATA = "https://dittybag.example.com/.well-known/oauth-protected-resource/mcp"


def test_a_challenge_has_the_given_parameters_and_at_least_one() -> None:
    header = challenge(
        metadata_url=METADATA, error="insufficient_scope", scope="dittybag:read dittybag:admin"
    )
    assert header == (
        b'Bearer error="insufficient_scope", scope="dittybag:read dittybag:admin", '
        b'resource_metadata="%b"' % METADATA.encode()
    )
    assert challenge(metadata_url=None) == b'Bearer realm="dittybag"'
    assert challenge(metadata_url=None, error="invalid_token") == b'Bearer error="invalid_token"'


@pytest.mark.parametrize("text", ['a"b', "a\\b", "a\r\nX: y", "a\0", "é", "", "a\x7f", "a\t"])
def test_a_value_cannot_break_out_of_its_quotes(text: str) -> None:
    for arguments in ({"metadata_url": text}, {"metadata_url": None, "error": text}):
        with pytest.raises(ValueError, match="a header cannot hold"):
            challenge(**arguments)
    with pytest.raises(ValueError, match="a header cannot hold"):
        challenge(metadata_url=None, scope=text)


def test_the_metadata_names_the_authorization_server() -> None:
    metadata = protected_resource_metadata(
        "https://dittybag.example.com/mcp",
        ["https://login.example.com/realms/team"],
        ["dittybag:read", "dittybag:write", "dittybag:admin"],
    )
    assert metadata == (
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
