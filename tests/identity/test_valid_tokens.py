"""Valid tokens identify the user and the scope."""

from __future__ import annotations

from typing import Any

import pytest

from dittybag.identity.challenges import challenge
from dittybag.identity.identity_errors import InsufficientScope, TokenRefused
from dittybag.identity.token_verifier import Identity
from tests.identity.jwt_builder import AUDIENCE, NOW, Key, ec_key, ed_key, good_claims, rsa_key
from tests.identity.oauth_issuer import Clock, Issuer

KEYS = [
    rsa_key("RS256"),
    rsa_key("PS256", "PS256"),
    ec_key("ES256"),
    ec_key("ES384", "ES384"),
    ed_key("Ed25519"),
    ed_key("Ed448", "Ed448"),
]
OTHER_KEYS = [
    rsa_key("RS384", "RS384"),
    rsa_key("RS512", "RS512"),
    rsa_key("PS384", "PS384"),
    rsa_key("PS512", "PS512"),
    ec_key("ES512", "ES512"),
]


async def verify_claims(claims: dict[str, Any], **settings: Any) -> Identity:
    key = rsa_key("RS256")
    async with Issuer(key) as issuer:
        return await issuer.verifier(**settings).verify(key.token(claims))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.kid)
async def test_a_token_identifies_the_user(key: Key) -> None:
    async with Issuer(*KEYS) as issuer:
        verifier = issuer.verifier()
        for _ in range(2):
            assert await verifier.verify(key.token()) == Identity("ann", "write", NOW + 600)


@pytest.mark.parametrize("key", OTHER_KEYS, ids=lambda key: key.kid)
async def test_other_algorithms_are_accepted_if_configured(key: Key) -> None:
    async with Issuer(*OTHER_KEYS) as issuer:
        configured = issuer.verifier(algorithms=(key.algorithm,))
        assert (await configured.verify(key.token())).user == "ann"
        with pytest.raises(TokenRefused):
            await issuer.verifier().verify(key.token())


async def test_a_key_without_an_algorithm_is_used_with_those_of_its_type() -> None:
    key, pss = rsa_key("plain"), rsa_key("plain", "PS256")
    bare = Key("plain", "RS256", key.jwk, key.sign)
    del bare.jwk["alg"], bare.jwk["use"]
    async with Issuer(bare) as issuer:
        verifier = issuer.verifier()
        assert (await verifier.verify(key.token())).user == "ann"
        with pytest.raises(TokenRefused):
            await verifier.verify(pss.token())


@pytest.mark.parametrize("kind", [None, "JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"])
async def test_several_token_types_are_accepted(kind: str | None) -> None:
    key = rsa_key("RS256")
    header = {"alg": "RS256", "kid": key.kid} | ({} if kind is None else {"typ": kind})
    async with Issuer(key) as issuer:
        assert (await issuer.verifier().verify(key.token(header=header))).user == "ann"


async def test_a_key_id_is_optional_if_only_one_key_matches() -> None:
    key = rsa_key("RS256")
    async with Issuer(key, ec_key("ES256")) as issuer:
        token = key.token(header={"alg": "RS256"})
        assert (await issuer.verifier().verify(token)).user == "ann"


@pytest.mark.parametrize("name", ["jwk", "jku", "x5u", "x5c", "x5t"])
async def test_keys_inside_a_token_are_ignored(name: str) -> None:
    key = rsa_key("RS256")
    async with Issuer(key) as issuer:
        values = {"jwk": rsa_key("stranger").jwk, "x5c": ["MIIB"]}
        header = {"alg": "RS256", "kid": key.kid, name: values.get(name, f"{issuer.base}/elsewhere")}
        assert (await issuer.verifier().verify(key.token(header=header))).user == "ann"
        assert dict(issuer.requests) == {"/keys": 1}


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": [AUDIENCE]},
        {"aud": ["account", AUDIENCE]},
        {"exp": NOW - 29.5},
        {"exp": NOW + 0.5},
        {"nbf": NOW + 30, "iat": NOW + 30},
        {"nbf": 0, "iat": None},
        {"roles": [[]] * 498},
        {"sub": "ann", "name": "Ann \u202e", "nested": {"sub": ["x"]}},
    ],
    ids=lambda claims: str(claims)[:40],
)
async def test_other_claims_are_accepted(claims: dict[str, Any]) -> None:
    assert (await verify_claims(good_claims(**claims))).user == "ann"


@pytest.mark.parametrize(
    "user", ["a", "a" * 200, "auth0|5f7c8ec7c33c6c004bbafe82", "Ünal Ş. 王", "a b", "ann@x.org"]
)
async def test_a_user_name_may_have_200_characters(user: str) -> None:
    assert (await verify_claims(good_claims(sub=user))).user == user


async def test_the_user_claim_is_configurable() -> None:
    claims = good_claims(preferred_username="ann.b", sub=None)
    assert (await verify_claims(claims, user_claim="preferred_username")).user == "ann.b"
    with pytest.raises(TokenRefused):
        await verify_claims(good_claims(), user_claim="preferred_username")


async def test_an_unverified_email_address_is_refused_as_user() -> None:
    for verified in ({}, {"email_verified": True}, {"email_verified": "true"}):
        claims = good_claims(email="ann@example.com", **verified)
        assert (await verify_claims(claims, user_claim="email")).user == "ann@example.com"
    unverified_values: list[Any] = [False, "false", [], 0]
    for value in unverified_values:
        with pytest.raises(TokenRefused, match="not verified"):
            await verify_claims(
                good_claims(email="ann@example.com", email_verified=value), user_claim="email"
            )


@pytest.mark.parametrize(
    ("claims", "scope"),
    [
        ({"scope": "dittybag:read"}, "read"),
        ({"scope": "dittybag:read dittybag:write"}, "write"),
        ({"scope": "dittybag:admin dittybag:read"}, "admin"),
        ({"scope": "openid  dittybag:read "}, "read"),
        ({"scope": None, "scp": ["dittybag:read"]}, "read"),
        ({"scope": None, "scp": ["profile", "dittybag:admin"]}, "admin"),
        ({"scope": None, "scp": "dittybag:read dittybag:write"}, "write"),
        ({"scope": "dittybag:read", "scp": ["dittybag:write"]}, "write"),
    ],
)
async def test_the_widest_scope_is_used(claims: dict[str, Any], scope: str) -> None:
    assert (await verify_claims(good_claims(**claims))).scope == scope


async def test_the_scope_prefix_is_configurable() -> None:
    assert (
        await verify_claims(good_claims(scope="bag/admin dittybag:read"), scope_prefix="bag/")
    ).scope == "admin"
    assert (await verify_claims(good_claims(scope="read"), scope_prefix="")).scope == "read"


@pytest.mark.parametrize(
    "claims",
    [
        {"scope": None},
        {"scope": ""},
        {"scope": "openid profile"},
        {"scope": "dittybag:"},
        {"scope": "dittybag:reader"},
        {"scope": "dittybag:READ"},
        {"scope": "xdittybag:admin"},
        {"scope": "dittybag:read,dittybag:write"},
        {"scope": "dittybag:read\tdittybag:write"},
        {"scope": None, "scp": []},
        {"scope": None, "scp": ["dittybag:read dittybag:write"]},
        {"scope": None, "scopes": ["dittybag:admin"], "permissions": ["dittybag:admin"]},
    ],
    ids=str,
)
async def test_a_valid_token_without_a_known_scope_gets_insufficient_scope(claims: dict[str, Any]) -> None:
    with pytest.raises(InsufficientScope) as refused:
        await verify_claims(good_claims(**claims))
    assert refused.value.status == 403
    header = challenge(metadata_url=None, error=refused.value.error, scope="dittybag:read")
    assert header == b'Bearer error="insufficient_scope", scope="dittybag:read"'


async def test_scopes_are_checked_only_after_the_signature() -> None:
    key, stranger = rsa_key("RS256"), rsa_key("stranger")
    header = {"alg": "RS256", "kid": key.kid}
    async with Issuer(key) as issuer:
        with pytest.raises(TokenRefused) as refused:
            await issuer.verifier().verify(stranger.token(good_claims(scope=""), header))
        assert type(refused.value) is TokenRefused


async def test_a_cached_token_is_refused_after_it_expires() -> None:
    key, clock = rsa_key("RS256"), Clock()
    async with Issuer(key) as issuer:
        verifier = issuer.verifier(clock)
        token = key.token(good_claims(exp=NOW + 20))
        clock.now = NOW + 49.9
        assert (await verifier.verify(token)).expires_at == NOW + 20
        clock.now = NOW + 50
        with pytest.raises(TokenRefused, match="expired"):
            await verifier.verify(token)


async def test_a_token_is_cached_for_60_seconds_but_not_after_the_clock_is_set_back() -> None:
    key, clock = rsa_key("RS256"), Clock()
    async with Issuer(key) as issuer:
        verifier = issuer.verifier(clock)
        token = key.token(good_claims(nbf=NOW))
        first = await verifier.verify(token)
        clock.now += 59.9
        assert await verifier.verify(token) is first
        clock.now += 0.1
        again = await verifier.verify(token)
        assert again == first
        assert again is not first
        clock.now = NOW + 300
        later = key.token(good_claims(nbf=NOW + 300))
        await verifier.verify(later)
        clock.now = NOW + 269
        with pytest.raises(TokenRefused, match="not valid yet"):
            await verifier.verify(later)


async def test_at_most_ten_thousand_tokens_are_cached() -> None:
    key = ed_key("Ed25519")
    async with Issuer(key) as issuer:
        verifier = issuer.verifier()
        first = await verifier.verify(key.token(good_claims(sub="user 0")))
        for index in range(1, 10_001):
            last = await verifier.verify(key.token(good_claims(sub=f"user {index}")))
        assert len(verifier._verified) == 10_000
        assert await verifier.verify(key.token(good_claims(sub="user 10000"))) is last
        assert await verifier.verify(key.token(good_claims(sub="user 0"))) is not first
