"""Tokens that are not good are refused, all with the same words to the outside."""

from __future__ import annotations

import pytest

from dittybag.identity import TokenRefused, challenge
from tests.identity.bad_tokens import BAD_TOKENS, Bad, main, published
from tests.identity.issuer import Issuer


def test_the_list_is_long_and_names_everything_once() -> None:
    assert len(BAD_TOKENS) >= 100
    assert len({bad.name for bad in BAD_TOKENS}) == len(BAD_TOKENS)


@pytest.mark.parametrize("bad", BAD_TOKENS, ids=lambda bad: bad.name)
async def test_a_bad_token_is_refused(bad: Bad) -> None:
    token = bad.make()
    async with Issuer(*published()) as issuer:
        verifier = issuer.verifier()
        assert (await verifier.verify(main().token())).user == "ann"
        # The second time, nothing is remembered of the first.
        for _ in range(2):
            with pytest.raises(TokenRefused) as refused:
                await verifier.verify(token)
            assert str(refused.value) == bad.reason
            # Not one of its subclasses, for which the client would be told something else.
            assert type(refused.value) is TokenRefused
            assert refused.value.status == 401
            said = challenge(metadata_url=None, error=refused.value.error)
            assert said == b'Bearer error="invalid_token"'
        await verifier.close()
        assert set(issuer.asked) == {"/keys"}
