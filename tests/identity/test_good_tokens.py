"""Good tokens say who is calling and what they may do."""

from __future__ import annotations

from typing import Any

import pytest

from dittybag.identity import Identity, InsufficientScope, TokenRefused, challenge
from tests.identity.issuer import Clock, Issuer
from tests.identity.tokens import AUDIENCE, NOW, Key, ec_key, ed_key, good_claims, rsa_key

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


async def verified(claims: dict[str, Any], **settings: Any) -> Identity:
    key = rsa_key("RS256")
    async with Issuer(key) as issuer:
        return await issuer.verifier(**settings).verify(key.token(claims))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.kid)
async def test_a_token_tells_who_is_calling(key: Key) -> None:
    async with Issuer(*KEYS) as issuer:
        verifier = issuer.verifier()
        for _ in range(2):
            assert await verifier.verify(key.token()) == Identity("ann", "write", NOW + 600)


@pytest.mark.parametrize("key", OTHER_KEYS, ids=lambda key: key.kid)
async def test_other_algorithms_are_accepted_where_they_are_chosen(key: Key) -> None:
    async with Issuer(*OTHER_KEYS) as issuer:
        chosen = issuer.verifier(algorithms=(key.algorithm,))
        assert (await chosen.verify(key.token())).user == "ann"
        with pytest.raises(TokenRefused):
            await issuer.verifier().verify(key.token())


async def test_a_key_that_names_no_algorithm_is_used_with_those_of_its_kind() -> None:
    key, pss = rsa_key("plain"), rsa_key("plain", "PS256")
    bare = Key("plain", "RS256", key.jwk, key.sign)
    del bare.jwk["alg"], bare.jwk["use"]
    async with Issuer(bare) as issuer:
        verifier = issuer.verifier()
        assert (await verifier.verify(key.token())).user == "ann"
        with pytest.raises(TokenRefused):
            await verifier.verify(pss.token())


@pytest.mark.parametrize("kind", [None, "JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"])
async def test_access_tokens_call_themselves_by_several_names(kind: str | None) -> None:
    key = rsa_key("RS256")
    header = {"alg": "RS256", "kid": key.kid} | ({} if kind is None else {"typ": kind})
    async with Issuer(key) as issuer:
        assert (await issuer.verifier().verify(key.token(header=header))).user == "ann"


async def test_a_token_need_not_name_the_only_key_that_fits() -> None:
    key = rsa_key("RS256")
    async with Issuer(key, ec_key("ES256")) as issuer:
        token = key.token(header={"alg": "RS256"})
        assert (await issuer.verifier().verify(token)).user == "ann"


@pytest.mark.parametrize("name", ["jwk", "jku", "x5u", "x5c", "x5t"])
async def test_keys_that_a_token_brings_along_are_not_looked_at(name: str) -> None:
    key = rsa_key("RS256")
    async with Issuer(key) as issuer:
        values = {"jwk": rsa_key("stranger").jwk, "x5c": ["MIIB"]}
        header = {"alg": "RS256", "kid": key.kid, name: values.get(name, f"{issuer.base}/elsewhere")}
        assert (await issuer.verifier().verify(key.token(header=header))).user == "ann"
        assert dict(issuer.asked) == {"/keys": 1}


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
async def test_what_else_a_token_may_say(claims: dict[str, Any]) -> None:
    assert (await verified(good_claims(**claims))).user == "ann"


@pytest.mark.parametrize(
    "user", ["a", "a" * 200, "auth0|5f7c8ec7c33c6c004bbafe82", "Ünal Ş. 王", "a b", "ann@x.org"]
)
async def test_a_user_has_a_name_of_at_most_200_characters(user: str) -> None:
    assert (await verified(good_claims(sub=user))).user == user


async def test_another_claim_may_name_the_user() -> None:
    claims = good_claims(preferred_username="ann.b", sub=None)
    assert (await verified(claims, user_claim="preferred_username")).user == "ann.b"
    with pytest.raises(TokenRefused):
        await verified(good_claims(), user_claim="preferred_username")


async def test_an_address_that_nobody_has_checked_names_no_user() -> None:
    for sure in ({}, {"email_verified": True}, {"email_verified": "true"}):
        claims = good_claims(email="ann@example.com", **sure)
        assert (await verified(claims, user_claim="email")).user == "ann@example.com"
    doubts: list[Any] = [False, "false", [], 0]
    for unsure in doubts:
        with pytest.raises(TokenRefused, match="not verified"):
            await verified(good_claims(email="ann@example.com", email_verified=unsure), user_claim="email")


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
async def test_the_widest_scope_counts(claims: dict[str, Any], scope: str) -> None:
    assert (await verified(good_claims(**claims))).scope == scope


async def test_scopes_may_have_another_prefix_or_none() -> None:
    assert (
        await verified(good_claims(scope="bag/admin dittybag:read"), scope_prefix="bag/")
    ).scope == "admin"
    assert (await verified(good_claims(scope="read"), scope_prefix="")).scope == "read"


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
async def test_a_good_token_without_our_scopes_is_told_apart(claims: dict[str, Any]) -> None:
    with pytest.raises(InsufficientScope) as refused:
        await verified(good_claims(**claims))
    assert refused.value.status == 403
    said = challenge(metadata_url=None, error=refused.value.error, scope="dittybag:read")
    assert said == b'Bearer error="insufficient_scope", scope="dittybag:read"'


async def test_nobody_learns_of_scopes_without_a_signature() -> None:
    key, stranger = rsa_key("RS256"), rsa_key("stranger")
    header = {"alg": "RS256", "kid": key.kid}
    async with Issuer(key) as issuer:
        with pytest.raises(TokenRefused) as refused:
            await issuer.verifier().verify(stranger.token(good_claims(scope=""), header))
        assert type(refused.value) is TokenRefused


async def test_a_token_that_was_good_is_refused_once_it_has_expired() -> None:
    key, clock = rsa_key("RS256"), Clock()
    async with Issuer(key) as issuer:
        verifier = issuer.verifier(clock)
        token = key.token(good_claims(exp=NOW + 20))
        clock.now = NOW + 49.9
        assert (await verifier.verify(token)).expires_at == NOW + 20
        clock.now = NOW + 50
        with pytest.raises(TokenRefused, match="expired"):
            await verifier.verify(token)


async def test_a_token_is_remembered_while_the_clock_goes_on_and_not_when_it_is_set_back() -> None:
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


async def test_no_more_than_ten_thousand_tokens_are_remembered() -> None:
    key = ed_key("Ed25519")
    async with Issuer(key) as issuer:
        verifier = issuer.verifier()
        first = await verifier.verify(key.token(good_claims(sub="user 0")))
        for index in range(1, 10_001):
            last = await verifier.verify(key.token(good_claims(sub=f"user {index}")))
        assert len(verifier._remembered) == 10_000
        assert await verifier.verify(key.token(good_claims(sub="user 10000"))) is last
        assert await verifier.verify(key.token(good_claims(sub="user 0"))) is not first
