"""Tokens that must be refused, each with the reason that is logged."""

from __future__ import annotations

import hashlib
import hmac
import json
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec import Struct

from tests.identity.jwt_builder import (
    AUDIENCE,
    ISSUER,
    NOW,
    Key,
    b64,
    compact,
    ec_key,
    ed_key,
    good_claims,
    rsa_key,
)

SHAPE = "not a signed JWT in compact form"
LONG = "too long"
NOT_ASCII = "it contains characters that are not ASCII"
BASE64 = "a part is not valid base64url"
CANONICAL = "a part is not canonical base64url"
JSON = "a part is not a valid JSON object"
ALGORITHM = "the algorithm (alg) is not allowed"
HEADER = "it has an unsupported header (crit, b64, zip or enc)"
TYPE = "not an access token"
KEY_ID = "the key id (kid) is not valid"
SIGNATURE = "not signed by a key of the issuer"
ISSUED_BY = "wrong issuer (iss)"
ISSUED_FOR = "wrong audience (aud)"
BOUND = "bound to a client key (cnf), which is not supported"
EXPIRED = "expired"
EARLY = "not valid yet"
NO_EXPIRY = "the expiry time (exp) is missing"
USER = "the user claim is missing or not valid"
NAME = "the user name contains characters that are not allowed"
SCOPES = "the scopes (scope, scp) are malformed"


class BadToken(Struct, frozen=True):
    """A token, created on demand, and the reason for refusing it."""

    name: str
    reason: str
    make: Callable[[], str]


def main() -> Key:
    """The key that signs good tokens."""
    return rsa_key("main")


def stranger() -> Key:
    """A key that the issuer does not have."""
    return rsa_key("stranger")


def weak() -> Key:
    return rsa_key("weak", bits=1024)


def published() -> list[Key]:
    """The keys that the issuer publishes: five good ones, and five that must not be used."""
    off_curve = ec_key("off-curve")
    on_curve = off_curve.jwk["y"]
    invalid_point = Key(
        "off-curve",
        "ES256",
        {**off_curve.jwk, "y": ("B" if on_curve[0] == "A" else "A") + on_curve[1:]},
        off_curve.sign,
    )
    secret = Key("secret", "HS256", {"kty": "oct", "k": b64(b"s" * 32)}, _hmac(b"s" * 32))
    other_use = rsa_key("encryption")
    other_use.jwk["use"] = "enc"
    leaked = rsa_key("leaked")
    leaked.jwk["d"] = b64(b"\x01" * 256)
    return [
        main(),
        ec_key("ec"),
        ec_key("ec-second"),
        ec_key("ec384", "ES384"),
        ed_key("ed"),
        weak(),
        invalid_point,
        secret,
        other_use,
        leaked,
    ]


def _hmac(secret: bytes, digest: Any = hashlib.sha256) -> Callable[[bytes], bytes]:
    return lambda data: hmac.new(secret, data, digest).digest()


def _header(**changes: Any) -> dict[str, Any]:
    header = {"alg": "RS256", "typ": "at+jwt", "kid": "main", **changes}
    return {name: value for name, value in header.items() if value is not None}


def signed(
    claims: dict[str, Any] | bytes | None = None, header: dict[str, Any] | bytes | None = None
) -> Callable[[], str]:
    """A token with a valid signature and any content."""
    return lambda: main().token(claims, header or _header())


def claims(**changes: Any) -> Callable[[], str]:
    return signed(good_claims(**changes))


def _all_bad_tokens() -> Iterator[BadToken]:
    yield from _algorithms()
    yield from _keys()
    yield from _headers()
    yield from _shapes()
    yield from _documents()
    yield from _origins()
    yield from _times()
    yield from _users()


def _algorithms() -> Iterator[BadToken]:
    for name in ("none", "None", "NONE", "nOnE"):
        yield BadToken(
            f"alg {name}, no signature",
            SHAPE,
            partial(compact, _header(alg=name), good_claims(), _unsigned),
        )
        yield BadToken(f"alg {name}, valid signature", ALGORITHM, signed(header=_header(alg=name)))
    for name, digest in (("HS256", hashlib.sha256), ("HS384", hashlib.sha384), ("HS512", hashlib.sha512)):
        for form, secret in _public_forms():
            yield BadToken(
                f"{name} with the public key as {form} as the secret",
                ALGORITHM,
                partial(_mac_signed, name, secret, digest),
            )
    yield BadToken("HS256 with a published secret", ALGORITHM, lambda: _secret().token())
    yield BadToken(
        "RS256 with a published secret",
        SIGNATURE,
        lambda: _secret().token(header=_header(kid="secret")),
    )
    yield BadToken(
        "HS256 with an empty secret",
        ALGORITHM,
        lambda: compact(_header(alg="HS256"), good_claims(), _hmac(b"")),
    )
    for name in (
        "RS384",
        "RS512",
        "PS384",
        "ES512",
        "ES256K",
        "RS1",
        "rs256",
        "RSA-OAEP",
        "dir",
        "A128KW",
        "",
    ):
        yield BadToken(f"alg {name or 'empty'}", ALGORITHM, signed(header=_header(alg=name)))
    for label, value in (
        ("missing", None),
        ("a list", ["RS256"]),
        ("a number", 256),
        ("an object", {"RS256": 1}),
        ("true", True),
    ):
        yield BadToken(f"alg {label}", ALGORITHM, signed(header=_header(alg=value)))
    yield BadToken("alg null", ALGORITHM, signed(header={**_header(), "alg": None}))
    for name in ("PS256", "ES256", "ES384", "EdDSA"):
        yield BadToken(
            f"alg {name} with an RS256 signature",
            SIGNATURE,
            signed(header=_header(alg=name)),
        )
    yield BadToken(
        "alg ES256 with an ES384 key",
        SIGNATURE,
        lambda: ec_key("ec384", "ES384").token(header=_header(alg="ES256", kid="ec384")),
    )
    yield BadToken(
        "alg RS256 with a key of another type",
        SIGNATURE,
        lambda: ed_key("ed").token(header=_header(kid="ed")),
    )


def _unsigned(data: bytes) -> bytes:
    return b""


def _mac_signed(name: str, secret: Callable[[], bytes], digest: Any) -> str:
    return compact(_header(alg=name), good_claims(), _hmac(secret(), digest))


def _stranger_with(name: str, value: Callable[[], Any]) -> str:
    return stranger().token(header=_header(**{name: value()}))


def _surrounded(before: str, after: str) -> str:
    return before + main().token() + after


def _secret() -> Key:
    return next(key for key in published() if key.kid == "secret")


def _public_forms() -> Iterator[tuple[str, Callable[[], bytes]]]:
    def public() -> rsa.RSAPublicKey:
        jwk = main().jwk
        n, e = (int.from_bytes(_raw(jwk[name]), "big") for name in ("n", "e"))
        return rsa.RSAPublicNumbers(e, n).public_key()

    yield "PEM", lambda: public().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    yield "DER", lambda: public().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    yield "JWK", lambda: json.dumps(main().jwk).encode()
    yield "modulus", lambda: _raw(main().jwk["n"])


def _raw(text: str) -> bytes:
    from base64 import urlsafe_b64decode

    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _keys() -> Iterator[BadToken]:
    yield BadToken("a stranger's key with its own id", SIGNATURE, lambda: stranger().token())
    yield BadToken("a stranger's key with our id", SIGNATURE, lambda: stranger().token(header=_header()))
    yield BadToken(
        "another of our keys with our id", SIGNATURE, lambda: rsa_key("leaked").token(header=_header())
    )
    yield BadToken("our key with a stranger's id", SIGNATURE, signed(header=_header(kid="stranger")))
    yield BadToken("our key with another id of ours", SIGNATURE, signed(header=_header(kid="ec")))
    yield BadToken(
        "a stranger's EC key",
        SIGNATURE,
        lambda: ec_key("ec-stranger").token(header=_header(alg="ES256", kid="ec")),
    )
    yield BadToken(
        "a stranger's Edwards key",
        SIGNATURE,
        lambda: ed_key("ed-stranger").token(header=_header(alg="EdDSA", kid="ed")),
    )
    yield BadToken("a point that is not on the curve", SIGNATURE, lambda: ec_key("off-curve").token())
    yield BadToken("an RSA key of 1024 bits", SIGNATURE, lambda: weak().token())
    yield BadToken("a key for encryption", SIGNATURE, lambda: rsa_key("encryption").token())
    yield BadToken("a key whose private half is published", SIGNATURE, lambda: rsa_key("leaked").token())
    yield BadToken(
        "no key id where two keys match",
        SIGNATURE,
        lambda: ec_key("ec").token(header=_header(alg="ES256", kid=None)),
    )
    yield BadToken(
        "no key id, and a stranger's key", SIGNATURE, lambda: stranger().token(header=_header(kid=None))
    )
    for label, kid in (
        ("a number", 1),
        ("a list", ["main"]),
        ("empty", ""),
        ("an object", {"main": 1}),
        ("long", "k" * 201),
    ):
        yield BadToken(f"key id {label}", KEY_ID, signed(header=_header(kid=kid)))
    yield BadToken("key id null", KEY_ID, signed(header={**_header(), "kid": None}))
    for kid in ("../../../dev/null", "main' OR '1'='1", "main\0", "MAIN", " main", "/dev/null"):
        yield BadToken(f"key id {kid!a}", SIGNATURE, signed(header=_header(kid=kid)))
    for name, value in (
        ("jwk", lambda: stranger().jwk),
        ("jku", lambda: "http://127.0.0.1:1/keys"),
        ("x5u", lambda: "http://127.0.0.1:1/chain.pem"),
        ("x5c", lambda: ["MIIB"]),
    ):
        yield BadToken(
            f"a stranger's key in {name}",
            SIGNATURE,
            partial(_stranger_with, name, value),
        )


def _headers() -> Iterator[BadToken]:
    for label, value in (
        ("of an extension", ["exp"]),
        ("empty", []),
        ("a string", "exp"),
        ("of b64", ["b64"]),
    ):
        yield BadToken(f"crit {label}", HEADER, signed(header=_header(crit=value)))
    yield BadToken("crit null", HEADER, signed(header={**_header(), "crit": None}))
    yield BadToken("b64 false", HEADER, _unencoded)
    yield BadToken("b64 false without crit", HEADER, signed(header=_header(b64=False)))
    yield BadToken("b64 true", HEADER, signed(header=_header(b64=True)))
    yield BadToken(
        "zip",
        HEADER,
        lambda: main().token(zlib.compress(json.dumps(good_claims()).encode()), _header(zip="DEF")),
    )
    yield BadToken("enc", HEADER, signed(header=_header(enc="A128GCM")))
    for type_ in ("logout+jwt", "dpop+jwt", "secevent+jwt", "JOSE", "", "JWT "):
        yield BadToken(f"typ {type_!r}", TYPE, signed(header=_header(typ=type_)))
    yield BadToken("typ a list", TYPE, signed(header=_header(typ=["JWT"])))


def _unencoded() -> str:
    payload = json.dumps(good_claims()).encode()
    header = b64(json.dumps(_header(b64=False, crit=["b64"])).encode())
    signature = main().sign(header.encode() + b"." + payload)
    return f"{header}.{b64(payload)}.{b64(signature)}"


def _shapes() -> Iterator[BadToken]:
    def parts() -> list[str]:
        return main().token().split(".")

    yield BadToken("empty", SHAPE, lambda: "")
    yield BadToken("a word", SHAPE, lambda: "token")
    yield BadToken("dots only", SHAPE, lambda: "..")
    yield BadToken("the signature stripped", SHAPE, lambda: ".".join(parts()[:2]))
    yield BadToken("the signature emptied", SHAPE, lambda: ".".join(parts()[:2]) + ".")
    yield BadToken("the header emptied", SHAPE, lambda: "." + ".".join(parts()[1:]))
    yield BadToken("the payload emptied", SHAPE, lambda: "{0}..{2}".format(*parts()))
    yield BadToken("four parts", SHAPE, lambda: main().token() + ".AAAA")
    yield BadToken("five parts", SHAPE, lambda: main().token() + ".AAAA.AAAA")
    yield BadToken(
        "an encrypted token, compressed",
        SHAPE,
        lambda: ".".join(
            [b64(json.dumps({"alg": "RSA-OAEP", "enc": "A128GCM", "zip": "DEF"}).encode()), *["AAAA"] * 4]
        ),
    )
    yield BadToken(
        "the JSON form",
        SHAPE,
        lambda: json.dumps(dict(zip(("protected", "payload", "signature"), parts(), strict=True))),
    )
    for label, space in (
        ("space", " "),
        ("tab", "\t"),
        ("line feed", "\n"),
        ("CRLF", "\r\n"),
        ("NUL", "\0"),
    ):
        yield BadToken(f"a {label} before it", SHAPE, partial(_surrounded, space, ""))
        yield BadToken(f"a {label} after it", SHAPE, partial(_surrounded, "", space))
    yield BadToken("a space in it", SHAPE, lambda: main().token().replace(".", ". ", 1))
    yield BadToken("the scheme before it", SHAPE, lambda: "Bearer " + main().token())
    yield BadToken("another token after a comma", SHAPE, lambda: f"{main().token()},{main().token()}")
    yield BadToken("padding", SHAPE, lambda: "{}.{}.{}==".format(*parts()))
    yield BadToken("base64 with + and /", SHAPE, lambda: "{}.{}.+/{}".format(*parts()))
    yield BadToken("percent signs", SHAPE, lambda: main().token().replace(".", "%2E"))
    yield BadToken("an impossible length", BASE64, _with_impossible_length)
    yield BadToken("unused bits set in the signature", CANONICAL, lambda: _with_unused_bits(main().token()))
    yield BadToken("unused bits set in the header", CANONICAL, _header_with_unused_bits)
    yield BadToken("too long", LONG, lambda: main().token(good_claims(filler="x" * 13_000)))
    yield BadToken("a million characters", LONG, lambda: "A" * 1_000_000)
    yield BadToken("a million dots", LONG, lambda: "." * 1_000_000)
    for label, text in (
        ("a non-ASCII letter", "é"),
        ("a full-width dot", "．"),
        ("a lone surrogate", "\udc80"),
        ("a zero-width space", "\u200b"),
    ):
        yield BadToken(label, NOT_ASCII, partial(_surrounded, "", text))
    yield BadToken("half a signature", SIGNATURE, lambda: "{}.{}.{}".format(*parts()[:2], parts()[2][:172]))
    yield BadToken(
        "a signature twice as long",
        SIGNATURE,
        lambda: "{}.{}.{}".format(*parts()[:2], b64(_raw(parts()[2]) * 2)),
    )
    yield BadToken(
        "a signature of zeros", SIGNATURE, lambda: "{}.{}.{}".format(*parts()[:2], b64(bytes(256)))
    )
    yield BadToken(
        "an EC signature of zeros",
        SIGNATURE,
        lambda: compact(_header(alg="ES256", kid="ec"), good_claims(), lambda data: bytes(64)),
    )
    yield BadToken(
        "an Edwards signature of zeros",
        SIGNATURE,
        lambda: compact(_header(alg="EdDSA", kid="ed"), good_claims(), lambda data: bytes(64)),
    )
    yield BadToken(
        "another token's signature",
        SIGNATURE,
        lambda: "{}.{}.{}".format(*parts()[:2], main().token(good_claims(sub="bob")).split(".")[2]),
    )
    yield BadToken(
        "another token's payload",
        SIGNATURE,
        lambda: _with_payload_of(good_claims(sub="bob")),
    )


def _with_payload_of(claims: dict[str, Any]) -> str:
    header, _, signature = main().token().split(".")
    return f"{header}.{main().token(claims).split('.')[1]}.{signature}"


def _with_impossible_length() -> str:
    """A part whose length is not possible in base64."""
    header, payload, _ = main().token().split(".")
    return f"{header}.{payload}.AAAAA"


def _with_unused_bits(token: str) -> str:
    """The same bytes in another spelling: base64 of 256 bytes has four unused bits."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return token[:-1] + alphabet[alphabet.index(token[-1]) ^ 1]


def _header_with_unused_bits() -> str:
    # Spaces are added until the length leaves unused bits.
    text = json.dumps(_header()).encode()
    text += b" " * ((1 - len(text)) % 3)
    header, payload, signature = main().token(header=text).split(".")
    return f"{_with_unused_bits(header)}.{payload}.{signature}"


def _documents() -> Iterator[BadToken]:
    good = json.dumps(good_claims()).encode()
    for label, document in (
        ("not JSON", b"claims"),
        ("nothing", b" "),
        ("a list", b"[" + good + b"]"),
        ("a text", b'"ann"'),
        ("null", b"null"),
        ("cut off", good[:-1]),
        ("two objects", good + good),
        ("not UTF-8", good.replace(b"ann", b"\xff\xfe")),
        ("UTF-16", good.decode().encode("utf-16")),
        ("with a byte order mark", b"\xef\xbb\xbf" + good),
        ("nested deeply", b'{"a":' * 1000 + b"1" + b"}" * 1000),
        ("of many lists", good[:-1] + b',"x":[' + b"[]," * 500 + b"1]}"),
        ("NaN", good.replace(b'"ann"', b'"ann","x":NaN')),
        ("Infinity", good.replace(b'"ann"', b'"ann","x":Infinity')),
        ("single quotes", good.replace(b'"', b"'")),
        ("a trailing comma", good[:-1] + b",}"),
        ("a number of 5000 digits", good[:-1] + b',"x":' + b"9" * 5000 + b"}"),
        ("the user twice", good[:-1] + b',"sub":"admin"}'),
        ("the expiry twice", good[:-1] + b',"exp":9999999999}'),
        ("a duplicate name in a nested object", good[:-1] + b',"x":{"y":1,"y":2}}'),
        ("a duplicate name with escapes", good[:-1] + b',"\\u0073ub":"admin"}'),
    ):
        yield BadToken(f"claims {label}", JSON, signed(document))
    header = json.dumps(_header()).encode()
    for label, document in (
        ("not JSON", b"header"),
        ("a list", b"[" + header + b"]"),
        ("not UTF-8", header.replace(b"main", b"\xff\xfe")),
        ("UTF-16", header.decode().encode("utf-16")),
        ("the algorithm twice", header[:-1] + b',"alg":"none"}'),
        ("the key id twice", header[:-1] + b',"kid":"ec"}'),
        ("nested deeply", b'{"a":' * 1000 + b"1" + b"}" * 1000),
    ):
        yield BadToken(f"header {label}", JSON, signed(header=document))


def _origins() -> Iterator[BadToken]:
    for label, issuer in (
        ("missing", None),
        ("another", "https://login.example.org/realms/team"),
        ("with an extra slash", ISSUER + "/"),
        ("in upper case", ISSUER.upper()),
        ("with a space", ISSUER + " "),
        ("truncated", ISSUER[:-1]),
        ("with a suffix", ISSUER + ".evil.example"),
        ("empty", ""),
        ("a list", [ISSUER]),
        ("a number", 1),
        ("an object", {"iss": ISSUER}),
    ):
        yield BadToken(f"issuer {label}", ISSUED_BY, claims(iss=issuer))
    for label, audience in (
        ("missing", None),
        ("another", "https://other.example.com/mcp"),
        ("with an extra slash", AUDIENCE + "/"),
        ("in upper case", AUDIENCE.upper()),
        ("truncated", AUDIENCE[:-1]),
        ("with a suffix", AUDIENCE + ".evil"),
        ("empty", ""),
        ("an empty list", []),
        ("a list of others", ["https://other.example.com/mcp", "account"]),
        ("a list with a number", [AUDIENCE, 1]),
        ("a list in a list", [[AUDIENCE]]),
        ("an object", {AUDIENCE: True}),
        ("true", True),
        ("several in one string", f"{AUDIENCE} account"),
    ):
        yield BadToken(f"audience {label}", ISSUED_FOR, claims(aud=audience))
    yield BadToken("audience null", ISSUED_FOR, signed({**good_claims(), "aud": None}))
    yield BadToken(
        "bound to a key", BOUND, claims(cnf={"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"})
    )


def _times() -> Iterator[BadToken]:
    now = int(NOW)
    for label, time in (
        ("exactly the leeway ago", now - 30),
        ("an hour ago", now - 3600),
        ("in 1970", 0),
        ("slightly more than the leeway ago", NOW - 30.001),
    ):
        yield BadToken(f"expired {label}", EXPIRED, claims(exp=time))
    yield BadToken("expiry missing", NO_EXPIRY, claims(exp=None))
    for name in ("exp", "nbf", "iat"):
        for label, value in (
            ("a string", str(now + 600)),
            ("true", True),
            ("a list", [now + 600]),
            ("an object", {"at": now}),
            ("negative", -1),
            ("beyond all dates", 10**18),
            ("of 400 digits", 10**400),
        ):
            yield BadToken(f"{name} {label}", f"{name} is not a valid time", claims(**{name: value}))
        yield BadToken(f"{name} null", f"{name} is not a valid time", signed({**good_claims(), name: None}))
        yield BadToken(f"{name} infinite", f"{name} is not a valid time", partial(_with_infinite, name))
    for name in ("nbf", "iat"):
        for label, time in (("slightly too late", NOW + 30.001), ("in an hour", now + 3600)):
            yield BadToken(f"{name} {label}", EARLY, claims(**{name: time}))


def _with_infinite(name: str) -> str:
    text = json.dumps(good_claims(**{name: "HERE"})).replace('"HERE"', "1e999")
    return main().token(text.encode())


def _users() -> Iterator[BadToken]:
    for label, user in (
        ("missing", None),
        ("empty", ""),
        ("too long", "a" * 201),
        ("a list", ["ann"]),
        ("a number", 7),
        ("true", True),
        ("an object", {"name": "ann"}),
    ):
        yield BadToken(f"user {label}", USER, claims(sub=user))
    yield BadToken("user null", USER, signed({**good_claims(), "sub": None}))
    for label, user in (
        ("with a line feed", "ann\nadmin"),
        ("with NUL", "ann\0"),
        ("with an escape", "ann\x1b[31m"),
        ("with DEL", "ann\x7f"),
        ("with a Latin-1 control character", "ann\x9b"),
        ("with a line separator", "ann\u2028admin"),
        ("with a lone surrogate", "ann\ud800"),
        ("with a right-to-left override", "ann\u202enimda"),
        ("with a zero-width space", "an\u200bn"),
        ("a space", " "),
        ("with a leading space", " ann"),
        ("with a trailing space", "ann "),
    ):
        yield BadToken(f"user {label}", NAME, claims(sub=user))
    for label, scopes in (
        ("a list", {"scope": ["dittybag:read"]}),
        ("a number", {"scope": 1}),
        ("an object", {"scope": {"dittybag:read": True}}),
        ("true", {"scope": True}),
        ("a list with a number", {"scp": ["dittybag:read", 1]}),
        ("a list in a list", {"scp": [["dittybag:read"]]}),
        ("an object instead of a list", {"scp": {"dittybag:read": True}}),
    ):
        yield BadToken(f"scope {label}", SCOPES, claims(**scopes))
    yield BadToken("scope null", SCOPES, signed({**good_claims(), "scope": None}))


BAD_TOKENS = list(_all_bad_tokens())
