"""A valid token with any change is refused."""

from __future__ import annotations

import asyncio
import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dittybag.identity.identity_errors import TokenRefused
from dittybag.identity.oauth_settings import OAuthSettings
from dittybag.identity.token_verifier import OAuthVerifier
from tests.identity.jwt_builder import AUDIENCE, ISSUER, Key, ec_key, ed_key, rsa_key
from tests.identity.oauth_issuer import Clock
from tests.repetitions import repetitions

KEYS = [rsa_key("RS256"), rsa_key("PS256", "PS256"), ec_key("ES256"), ed_key("EdDSA")]
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@cache
def valid_token(key: Key) -> str:
    return key.token()


async def fetch(url: str) -> bytes:
    return json.dumps({"keys": [key.jwk for key in KEYS]}).encode()


async def assert_refused(tokens: list[str]) -> None:
    config = OAuthSettings(issuer=ISSUER, audience=AUDIENCE, jwks="https://login.example.com/keys")
    verifier = OAuthVerifier(config, fetch=fetch, now=Clock())
    for key in KEYS:
        assert (await verifier.verify(valid_token(key))).user == "ann"
    for token in tokens:
        with pytest.raises(TokenRefused):
            await verifier.verify(token)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.kid)
async def test_no_character_can_be_replaced(key: Key) -> None:
    token = key.token()
    changed = []
    for index, char in enumerate(token):
        # The replacements differ by single bits in base64; a dot changes the number of parts.
        at = ALPHABET.find(char)
        others = {ALPHABET[at ^ bit] for bit in (1, 2, 4, 8, 16, 32)} if at >= 0 else {"A", "-"}
        changed += [token[:index] + other + token[index + 1 :] for other in (*others, ".", "=")]
    await assert_refused([other for other in changed if other != token])


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.kid)
async def test_no_character_can_be_removed_or_doubled(key: Key) -> None:
    token = key.token()
    ends = range(len(token))
    await assert_refused([token[:end] + token[end + 1 :] for end in ends] + [token[:end] for end in ends])
    await assert_refused([token[:end] + token[end] + token[end:] for end in ends])


@settings(max_examples=repetitions(100, 2000), deadline=None)
@given(st.sampled_from(KEYS).map(valid_token), st.data())
def test_no_part_can_be_replaced_by_arbitrary_text(token: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(token)))
    end = data.draw(st.integers(start, min(len(token), start + 8)))
    piece = data.draw(st.text(max_size=8).filter(lambda piece: piece != token[start:end]))
    changed = token[:start] + piece + token[end:]
    if changed not in map(valid_token, KEYS):
        asyncio.run(assert_refused([changed]))


@settings(max_examples=repetitions(100, 2000), deadline=None)
@given(
    st.text(max_size=300) | st.from_regex(r"[A-Za-z0-9_-]{1,80}(\.[A-Za-z0-9_-]{0,80}){0,5}", fullmatch=True)
)
def test_arbitrary_text_is_not_a_token(text: str) -> None:
    asyncio.run(assert_refused([text]))
