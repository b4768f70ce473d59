"""Invalid tokens are refused with the same challenge, whatever the reason."""

from __future__ import annotations

import pytest

from dittybag.identity.challenges import challenge
from dittybag.identity.identity_errors import TokenRefused
from tests.identity.bad_tokens import BAD_TOKENS, BadToken, main, published
from tests.identity.oauth_issuer import Issuer


def test_the_list_has_at_least_100_tokens_with_unique_names() -> None:
    assert len(BAD_TOKENS) >= 100
    assert len({bad.name for bad in BAD_TOKENS}) == len(BAD_TOKENS)


@pytest.mark.parametrize("bad", BAD_TOKENS, ids=lambda bad: bad.name)
async def test_a_bad_token_is_refused(bad: BadToken) -> None:
    token = bad.make()
    async with Issuer(*published()) as issuer:
        verifier = issuer.verifier()
        assert (await verifier.verify(main().token())).user == "ann"
        # Twice: a refused token must not be cached.
        for _ in range(2):
            with pytest.raises(TokenRefused) as refused:
                await verifier.verify(token)
            assert str(refused.value) == bad.reason
            # Not a subclass, which would give the client another error.
            assert type(refused.value) is TokenRefused
            assert refused.value.status == 401
            header = challenge(metadata_url=None, error=refused.value.error)
            assert header == b'Bearer error="invalid_token"'
        await verifier.close()
        assert set(issuer.requests) == {"/keys"}
