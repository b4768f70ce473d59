"""A good token in which anything at all was changed is refused."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dittybag.identity import OAuthSettings, TokenRefused, OAuthVerifier
from tests.identity.issuer import Clock
from tests.identity.tokens import AUDIENCE, ISSUER, Key, ec_key, ed_key, rsa_key

KEYS = [rsa_key("RS256"), rsa_key("PS256", "PS256"), ec_key("ES256"), ed_key("EdDSA")]
TOKENS = [key.token() for key in KEYS]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


async def fetch(url: str) -> bytes:
    return json.dumps({"keys": [key.jwk for key in KEYS]}).encode()


async def refused(tokens: list[str]) -> None:
    where = OAuthSettings(issuer=ISSUER, audience=AUDIENCE, jwks="https://login.example.com/keys")
    verifier = OAuthVerifier(where, fetch=fetch, now=Clock())
    for token in TOKENS:
        assert (await verifier.verify(token)).user == "ann"
    for token in tokens:
        with pytest.raises(TokenRefused):
            await verifier.verify(token)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.kid)
async def test_no_letter_can_be_another(key: Key) -> None:
    token = key.token()
    changed = []
    for index, letter in enumerate(token):
        # The neighbours in base64 differ by single bits; the point makes it another number of parts.
        at = LETTERS.find(letter)
        others = {LETTERS[at ^ bit] for bit in (1, 2, 4, 8, 16, 32)} if at >= 0 else {"A", "-"}
        changed += [token[:index] + other + token[index + 1 :] for other in (*others, ".", "=")]
    await refused([one for one in changed if one != token])


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.kid)
async def test_no_letter_can_be_left_out_or_come_twice(key: Key) -> None:
    token = key.token()
    ends = range(len(token))
    await refused([token[:end] + token[end + 1 :] for end in ends] + [token[:end] for end in ends])
    await refused([token[:end] + token[end] + token[end:] for end in ends])


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(TOKENS), st.data())
def test_no_piece_can_be_replaced_by_any_text(token: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(token)))
    end = data.draw(st.integers(start, min(len(token), start + 8)))
    piece = data.draw(st.text(max_size=8).filter(lambda piece: piece != token[start:end]))
    changed = token[:start] + piece + token[end:]
    if changed not in TOKENS:
        asyncio.run(refused([changed]))


@settings(max_examples=200, deadline=None)
@given(
    st.text(max_size=300) | st.from_regex(r"[A-Za-z0-9_-]{1,80}(\.[A-Za-z0-9_-]{0,80}){0,5}", fullmatch=True)
)
def test_no_text_is_a_token(text: str) -> None:
    asyncio.run(refused([text]))
