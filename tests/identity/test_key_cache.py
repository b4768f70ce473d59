"""The key cache through key rotation and outages of the issuer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import cached_property
from typing import Any

import pytest

from dittybag.identity import key_cache
from dittybag.identity.identity_errors import KeysUnavailable, TokenRefused
from dittybag.identity.oauth_settings import OAuthSettings
from dittybag.identity.token_verifier import Identity, OAuthVerifier
from tests.identity.jwt_builder import AUDIENCE, ISSUER, ec_key, good_claims, rsa_key
from tests.identity.oauth_issuer import Clock, Issuer, http_response

OLD, NEW = rsa_key("old"), rsa_key("new")


class CachedIssuer(Issuer):
    """An issuer with the key `OLD`, a verifier that caches its keys, and the clock of the verifier."""

    def __init__(self) -> None:
        super().__init__(OLD)
        self.clock = Clock()

    @cached_property
    def cache(self) -> OAuthVerifier:
        return self.verifier(self.clock)

    async def verify(self, token: str) -> Identity:
        return await self.cache.verify(token)


@pytest.fixture
async def issuer() -> AsyncIterator[CachedIssuer]:
    async with CachedIssuer() as issuer:
        yield issuer
        await issuer.cache.close()


def long_lived(user: str = "ann") -> dict[str, Any]:
    """Claims that do not expire during the test."""
    return good_claims(sub=user, exp=9_000_000_000)


async def test_keys_are_fetched_once_for_many_tokens_at_the_same_time(issuer: CachedIssuer) -> None:
    tokens = [OLD.token(long_lived(f"user {number}")) for number in range(50)]
    found = await asyncio.gather(*map(issuer.verify, tokens))
    assert [identity.user for identity in found] == [f"user {number}" for number in range(50)]
    assert issuer.fetches == 1


async def test_a_new_key_is_accepted_immediately(issuer: CachedIssuer) -> None:
    await issuer.verify(OLD.token())
    issuer.keys.append(NEW)
    assert (await issuer.verify(NEW.token())).user == "ann"
    assert (await issuer.verify(OLD.token())).user == "ann"
    assert issuer.fetches == 2


async def test_a_withdrawn_key_is_refused_after_ten_minutes(issuer: CachedIssuer) -> None:
    issuer.keys.append(NEW)
    token = OLD.token(long_lived())
    await issuer.verify(token)
    issuer.keys = [NEW]
    issuer.clock.now += 539
    assert (await issuer.verify(token)).user == "ann"
    assert issuer.fetches == 1
    # After a pause, even the first request must not use the stale keys.
    issuer.clock.now += 61
    with pytest.raises(TokenRefused):
        await issuer.verify(token)
    assert (await issuer.verify(NEW.token(long_lived()))).user == "ann"


async def test_a_withdrawn_key_is_refused_after_a_fetch_for_another_reason(issuer: CachedIssuer) -> None:
    token = OLD.token()
    await issuer.verify(token)
    issuer.keys = [NEW]
    await issuer.verify(NEW.token())
    with pytest.raises(TokenRefused):
        await issuer.verify(token)


async def test_tokens_are_refused_if_all_keys_are_withdrawn(
    issuer: CachedIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    await issuer.verify(OLD.token(long_lived()))
    issuer.keys = []
    issuer.clock.now += 600
    with pytest.raises(TokenRefused):
        await issuer.verify(OLD.token(long_lived()))
    assert "every token will be refused" in caplog.text


async def test_keys_are_refreshed_in_the_background_before_they_are_stale(issuer: CachedIssuer) -> None:
    token = OLD.token(long_lived())
    await issuer.verify(token)
    issuer.is_responding.clear()
    issuer.clock.now += 540
    # The issuer does not respond, and the requests do not wait for it.
    for _ in range(20):
        async with asyncio.timeout(1):
            assert (await issuer.verify(token)).user == "ann"
    issuer.keys = [NEW]
    issuer.is_responding.set()
    task = issuer.cache._key_cache._refresh_task
    assert task is not None
    async with asyncio.timeout(5):
        await task
    assert issuer.fetches == 2
    with pytest.raises(TokenRefused):
        await issuer.verify(token)
    assert (await issuer.verify(NEW.token(long_lived()))).user == "ann"


async def test_a_flood_of_unknown_keys_causes_one_fetch_in_ten_seconds(issuer: CachedIssuer) -> None:
    await issuer.verify(OLD.token(long_lived()))

    async def flood(count: int) -> None:
        headers = [{"alg": "RS256", "kid": f"kid {number}"} for number in range(count)]
        tokens = [OLD.token(long_lived(), header) for header in headers]
        refusals = await asyncio.gather(*map(issuer.verify, tokens), return_exceptions=True)
        assert {type(refusal) for refusal in refusals} == {TokenRefused}
        # One by one as well.
        for token in tokens[:50]:
            with pytest.raises(TokenRefused):
                await issuer.verify(token)

    await flood(500)
    assert issuer.fetches == 2
    issuer.clock.now += 9.9
    await flood(100)
    assert issuer.fetches == 2
    issuer.clock.now += 0.1
    await flood(100)
    assert issuer.fetches == 3
    assert (await issuer.verify(OLD.token(long_lived()))).user == "ann"


async def test_a_known_key_with_other_algorithms_causes_one_fetch(issuer: CachedIssuer) -> None:
    await issuer.verify(OLD.token())
    for name in ("PS256", "ES256", "EdDSA") * 20:
        with pytest.raises(TokenRefused):
            await issuer.verify(OLD.token(header={"alg": name, "kid": OLD.kid}))
    assert issuer.fetches == 2


async def test_tokens_with_invalid_claims_cause_no_fetch(issuer: CachedIssuer) -> None:
    for token in ("x", OLD.token(good_claims(exp=1)), OLD.token(good_claims(aud="other"))):
        with pytest.raises(TokenRefused):
            await issuer.verify(token)
    assert issuer.fetches == 0


async def test_without_any_keys_tokens_cannot_be_verified(issuer: CachedIssuer) -> None:
    await issuer.stop()
    for _ in range(3):
        with pytest.raises(KeysUnavailable) as unavailable:
            await issuer.verify(OLD.token())
    assert unavailable.value.status == 503
    assert "Connect call failed" in str(unavailable.value)
    async with issuer:
        # No retry within the delay.
        with pytest.raises(KeysUnavailable):
            await issuer.verify(OLD.token())
        assert issuer.fetches == 0
        # The next request after the delay retries.
        issuer.clock.now += 10
        assert (await issuer.verify(OLD.token())).user == "ann"


async def test_cached_keys_are_used_for_an_hour_of_outage(issuer: CachedIssuer) -> None:
    token = OLD.token(long_lived())
    await issuer.verify(token)
    await issuer.stop()
    start = issuer.clock.now
    for minute in range(1, 60):
        issuer.clock.now = start + minute * 60
        assert (await issuer.verify(token)).user == "ann"
    issuer.clock.now = start + 3599.9
    assert (await issuer.verify(token)).user == "ann"
    issuer.clock.now = start + 3600
    with pytest.raises(KeysUnavailable):
        await issuer.verify(token)
    async with issuer:
        issuer.clock.now += 10
        assert (await issuer.verify(token)).user == "ann"


async def test_in_an_outage_only_one_request_waits(
    issuer: CachedIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_cache, "FETCH_TIMEOUT", 0.05)
    token = OLD.token(long_lived())
    await issuer.verify(token)
    issuer.is_responding.clear()
    issuer.clock.now += 600
    assert (await issuer.verify(token)).user == "ann"
    assert issuer.fetches == 2
    monkeypatch.setattr(key_cache, "FETCH_TIMEOUT", 60.0)
    issuer.was_requested.clear()
    for seconds in (9.9, 0.1, 5, 20):
        issuer.clock.now += seconds
        async with asyncio.timeout(5):
            assert (await issuer.verify(token)).user == "ann"
    await issuer.was_requested.wait()
    # There is only one fetch at a time.
    assert issuer.fetches == 3


async def test_an_unknown_key_in_an_outage_is_not_refused_as_invalid(issuer: CachedIssuer) -> None:
    await issuer.verify(OLD.token(long_lived()))
    await issuer.stop()
    for _ in range(2):
        with pytest.raises(KeysUnavailable):
            await issuer.verify(NEW.token(long_lived()))
    assert (await issuer.verify(OLD.token(long_lived()))).user == "ann"
    issuer.keys.append(NEW)
    async with issuer:
        issuer.clock.now += 10
        assert (await issuer.verify(NEW.token(long_lived()))).user == "ann"


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b"{}",
        b'{"keys": {}}',
        b'{"keys": null}',
        b'{"keys": [], "keys": []}',
        b"\xff\xfe",
        b'{"keys": [' + b"{}," * 100 + b"{}]}",
        b'{"keys": ' + b"[" * 100_000,
    ],
    ids=lambda document: document[:20].decode("latin-1"),
)
async def test_an_invalid_key_set_does_not_replace_the_cached_one(
    issuer: CachedIssuer, document: bytes
) -> None:
    await issuer.verify(OLD.token(long_lived()))
    issuer.responses["/keys"] = http_response(document)
    issuer.clock.now += 600
    assert (await issuer.verify(OLD.token(long_lived()))).user == "ann"
    assert issuer.fetches == 2
    with pytest.raises(KeysUnavailable, match="key"):
        await issuer.verifier().verify(OLD.token())


@pytest.mark.parametrize(
    "jwk",
    [
        None,
        1,
        "key",
        [],
        {},
        {"kty": "RSA"},
        {"kty": ["RSA"]},
        {"kty": "RSA", "n": 1, "e": 1},
        {"kty": "RSA", "n": "", "e": ""},
        {"kty": "RSA", "n": "!!", "e": "AQAB"},
        {"kty": "RSA", "n": OLD.jwk["n"], "e": "AQ"},
        {"kty": "RSA", "n": OLD.jwk["n"], "e": None},
        {**OLD.jwk, "kid": 1},
        {**OLD.jwk, "use": ["sig"]},
        {**OLD.jwk, "key_ops": "verify"},
        {**OLD.jwk, "key_ops": ["encrypt"]},
        {**OLD.jwk, "alg": "RSA-OAEP"},
        {**OLD.jwk, "alg": ["RS256"]},
        {**OLD.jwk, "crv": "P-256"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "EC", "crv": "secp256k1", "x": ec_key("k").jwk["x"], "y": ec_key("k").jwk["y"]},
        {"kty": "EC", "crv": "P-256", "x": ec_key("k").jwk["x"], "y": ec_key("l").jwk["y"]},
        {"kty": "EC", "crv": ["P-256"], "x": ec_key("k").jwk["x"], "y": ec_key("k").jwk["y"]},
        {"kty": "OKP", "crv": "Ed25519", "x": "AA"},
        {"kty": "OKP", "crv": "X25519", "x": "A" * 43},
        {"kty": "oct", "k": "AAAA"},
    ],
    # Keys are random, and test names must be stable.
    ids=lambda jwk: str(jwk)[:14],
)
async def test_unusable_keys_are_skipped(
    issuer: CachedIssuer, jwk: Any, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.responses["/keys"] = http_response({"keys": [jwk, NEW.jwk]})
    assert (await issuer.verifier().verify(NEW.token())).user == "ann"
    assert "every token will be refused" not in caplog.text
    issuer.responses["/keys"] = http_response({"keys": [jwk]})
    for key in (NEW, OLD):
        with pytest.raises(TokenRefused):
            await issuer.verifier().verify(key.token())
    assert "every token will be refused" in caplog.text


async def test_two_keys_may_share_an_id(issuer: CachedIssuer) -> None:
    issuer.keys += [rsa_key("old", bits=2049), ec_key("old")]
    for key in issuer.keys:
        assert (await issuer.verify(key.token())).user == "ann"


async def test_a_cancelled_request_does_not_cancel_the_fetch_for_others(issuer: CachedIssuer) -> None:
    issuer.is_responding.clear()
    cancelled, waiting = (asyncio.create_task(issuer.verify(OLD.token())) for _ in range(2))
    await issuer.was_requested.wait()
    cancelled.cancel()
    issuer.is_responding.set()
    assert (await waiting).user == "ann"
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert issuer.fetches == 1


async def test_other_tokens_are_verified_during_a_fetch(issuer: CachedIssuer) -> None:
    issuer.is_responding.clear()
    waiting = asyncio.create_task(issuer.verify(OLD.token()))
    await issuer.was_requested.wait()
    with pytest.raises(TokenRefused):
        await issuer.verify("x.y.z")
    assert not waiting.done()
    issuer.is_responding.set()
    assert (await waiting).user == "ann"


async def test_close_cancels_the_fetch(issuer: CachedIssuer) -> None:
    issuer.is_responding.clear()
    waiting = asyncio.create_task(issuer.verify(OLD.token()))
    await issuer.was_requested.wait()
    await issuer.cache.close()
    with pytest.raises(KeysUnavailable):
        await waiting
    await issuer.cache.close()


async def test_after_the_clock_is_set_back_the_keys_are_fetched_again(issuer: CachedIssuer) -> None:
    token = OLD.token(long_lived() | {"iat": 0})
    await issuer.verify(token)
    issuer.clock.now -= 86_400
    issuer.keys = [NEW]
    with pytest.raises(TokenRefused):
        await issuer.verify(token)


async def test_after_the_clock_is_set_back_in_an_outage_the_keys_stay(issuer: CachedIssuer) -> None:
    token = OLD.token(long_lived() | {"iat": 0})
    await issuer.verify(token)
    await issuer.stop()
    issuer.clock.now -= 86_400
    assert (await issuer.verify(token)).user == "ann"
    issuer.clock.now += 3000
    with pytest.raises(KeysUnavailable):
        await issuer.verify(token)


async def test_any_exception_of_a_fetch_is_an_outage_and_is_not_quoted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fetch(url: str) -> bytes:
        raise RuntimeError(f"cannot get {url}")

    settings = OAuthSettings(issuer=ISSUER, audience=AUDIENCE, jwks="https://example.com/keys?secret=hunter2")
    with pytest.raises(KeysUnavailable, match="RuntimeError") as unavailable:
        await OAuthVerifier(settings, fetch=fetch, now=Clock()).verify(OLD.token())
    assert "hunter2" not in str(unavailable.value)
    assert "RuntimeError" in caplog.text
    assert "hunter2" not in caplog.text


async def test_tokens_are_not_logged(issuer: CachedIssuer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    good, unknown = OLD.token(long_lived()), NEW.token(long_lived())
    await issuer.verify(good)
    with pytest.raises(TokenRefused):
        await issuer.verify(unknown)
    await issuer.stop()
    issuer.clock.now += 600
    await issuer.verify(good)
    assert "cannot be fetched" in caplog.text
    for token in (good, unknown):
        for part in token.split("."):
            assert part not in caplog.text
