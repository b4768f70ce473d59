"""Tokens that must be refused, each with the reason that our own log is given."""

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

from tests.identity.tokens import (
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

SHAPE = "it is not made like a signed token"
LONG = "it is too long"
LETTERS = "it has characters in it that no token has"
BASE64 = "a part of it is not base64url"
CANONICAL = "a part of it is not base64url as it should be"
JSON = "a part of it is not a JSON object"
ALGORITHM = "its algorithm is not allowed"
HEADER = "it has a header that is not understood"
KIND = "it is not an access token"
KEY_ID = "the id of its key is not one"
SIGNATURE = "none of the issuer's keys has signed it"
FROM = "it is from another issuer"
FOR = "it is for another audience"
BOUND = "it is bound to a key of the client"
EXPIRED = "it has expired"
EARLY = "it is not valid yet"
ENDLESS = "it does not say when it expires"
TIME = "one of its times is not a time"
USER = "it does not say who the user is"
NAME = "the name of its user has characters in it that are not allowed"
SCOPES = "its scopes are not scopes"


class Bad(Struct, frozen=True):
    """A token, made when it is needed, and why it is refused."""

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
    """What the issuer publishes: five good keys, and five that must not be used."""
    off_curve = ec_key("off-curve")
    on_curve = off_curve.jwk["y"]
    odd = Key(
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
        odd,
        secret,
        other_use,
        leaked,
    ]


def _hmac(secret: bytes, digest: Any = hashlib.sha256) -> Callable[[bytes], bytes]:
    return lambda data: hmac.new(secret, data, digest).digest()


def _header(**others: Any) -> dict[str, Any]:
    header = {"alg": "RS256", "typ": "at+jwt", "kid": "main", **others}
    return {name: value for name, value in header.items() if value is not None}


def signed(
    claims: dict[str, Any] | bytes | None = None, header: dict[str, Any] | bytes | None = None
) -> Callable[[], str]:
    """Signed as it should be, whatever it says."""
    return lambda: main().token(claims, header or _header())


def claims(**others: Any) -> Callable[[], str]:
    return signed(good_claims(**others))


def _table() -> Iterator[Bad]:
    yield from _algorithms()
    yield from _keys()
    yield from _headers()
    yield from _shapes()
    yield from _documents()
    yield from _origins()
    yield from _times()
    yield from _users()


def _algorithms() -> Iterator[Bad]:
    for name in ("none", "None", "NONE", "nOnE"):
        yield Bad(
            f"alg {name}, no signature",
            SHAPE,
            partial(compact, _header(alg=name), good_claims(), _unsigned),
        )
        yield Bad(f"alg {name}, true signature", ALGORITHM, signed(header=_header(alg=name)))
    for name, digest in (("HS256", hashlib.sha256), ("HS384", hashlib.sha384), ("HS512", hashlib.sha512)):
        for form, secret in _public_forms():
            yield Bad(
                f"{name} with the public key as {form} for a secret",
                ALGORITHM,
                partial(_mac_signed, name, secret, digest),
            )
    yield Bad("HS256 with a secret that is published", ALGORITHM, lambda: _secret().token())
    yield Bad(
        "RS256 with a secret that is published",
        SIGNATURE,
        lambda: _secret().token(header=_header(kid="secret")),
    )
    yield Bad(
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
        yield Bad(f"alg {name or 'empty'}", ALGORITHM, signed(header=_header(alg=name)))
    for label, value in (
        ("missing", None),
        ("a list", ["RS256"]),
        ("a number", 256),
        ("an object", {"RS256": 1}),
        ("true", True),
    ):
        yield Bad(f"alg {label}", ALGORITHM, signed(header=_header(alg=value)))
    yield Bad("alg null", ALGORITHM, signed(header={**_header(), "alg": None}))
    for name in ("PS256", "ES256", "ES384", "EdDSA"):
        yield Bad(
            f"alg {name} with a signature of RS256",
            SIGNATURE,
            signed(header=_header(alg=name)),
        )
    yield Bad(
        "alg ES256 with a key for ES384",
        SIGNATURE,
        lambda: ec_key("ec384", "ES384").token(header=_header(alg="ES256", kid="ec384")),
    )
    yield Bad(
        "alg RS256 with a key of another kind",
        SIGNATURE,
        lambda: ed_key("ed").token(header=_header(kid="ed")),
    )


def _unsigned(data: bytes) -> bytes:
    return b""


def _mac_signed(name: str, secret: Callable[[], bytes], digest: Any) -> str:
    return compact(_header(alg=name), good_claims(), _hmac(secret(), digest))


def _stranger_with(name: str, value: Callable[[], Any]) -> str:
    return stranger().token(header=_header(**{name: value()}))


def _between(before: str, after: str) -> str:
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


def _keys() -> Iterator[Bad]:
    yield Bad("a stranger's key with its own id", SIGNATURE, lambda: stranger().token())
    yield Bad("a stranger's key with our id", SIGNATURE, lambda: stranger().token(header=_header()))
    yield Bad("another of our keys with our id", SIGNATURE, lambda: rsa_key("leaked").token(header=_header()))
    yield Bad("our key with a stranger's id", SIGNATURE, signed(header=_header(kid="stranger")))
    yield Bad("our key with another id of ours", SIGNATURE, signed(header=_header(kid="ec")))
    yield Bad(
        "a stranger's elliptic key",
        SIGNATURE,
        lambda: ec_key("ec-stranger").token(header=_header(alg="ES256", kid="ec")),
    )
    yield Bad(
        "a stranger's Edwards key",
        SIGNATURE,
        lambda: ed_key("ed-stranger").token(header=_header(alg="EdDSA", kid="ed")),
    )
    yield Bad("a point that is not on the curve", SIGNATURE, lambda: ec_key("off-curve").token())
    yield Bad("an RSA key of 1024 bits", SIGNATURE, lambda: weak().token())
    yield Bad("a key for encryption", SIGNATURE, lambda: rsa_key("encryption").token())
    yield Bad("a key whose private half is published", SIGNATURE, lambda: rsa_key("leaked").token())
    yield Bad(
        "no key id where two keys fit",
        SIGNATURE,
        lambda: ec_key("ec").token(header=_header(alg="ES256", kid=None)),
    )
    yield Bad(
        "no key id, and a stranger's key", SIGNATURE, lambda: stranger().token(header=_header(kid=None))
    )
    for label, kid in (
        ("a number", 1),
        ("a list", ["main"]),
        ("empty", ""),
        ("an object", {"main": 1}),
        ("long", "k" * 201),
    ):
        yield Bad(f"key id {label}", KEY_ID, signed(header=_header(kid=kid)))
    yield Bad("key id null", KEY_ID, signed(header={**_header(), "kid": None}))
    for kid in ("../../../dev/null", "main' OR '1'='1", "main\0", "MAIN", " main", "/dev/null"):
        yield Bad(f"key id {kid!a}", SIGNATURE, signed(header=_header(kid=kid)))
    for name, value in (
        ("jwk", lambda: stranger().jwk),
        ("jku", lambda: "http://127.0.0.1:1/keys"),
        ("x5u", lambda: "http://127.0.0.1:1/chain.pem"),
        ("x5c", lambda: ["MIIB"]),
    ):
        yield Bad(
            f"a stranger's key in {name}",
            SIGNATURE,
            partial(_stranger_with, name, value),
        )


def _headers() -> Iterator[Bad]:
    for label, value in (("of an extension", ["exp"]), ("empty", []), ("a text", "exp"), ("of b64", ["b64"])):
        yield Bad(f"crit {label}", HEADER, signed(header=_header(crit=value)))
    yield Bad("crit null", HEADER, signed(header={**_header(), "crit": None}))
    yield Bad("b64 false", HEADER, _unencoded)
    yield Bad("b64 false without crit", HEADER, signed(header=_header(b64=False)))
    yield Bad("b64 true", HEADER, signed(header=_header(b64=True)))
    yield Bad(
        "zip",
        HEADER,
        lambda: main().token(zlib.compress(json.dumps(good_claims()).encode()), _header(zip="DEF")),
    )
    yield Bad("enc", HEADER, signed(header=_header(enc="A128GCM")))
    for kind in ("logout+jwt", "dpop+jwt", "secevent+jwt", "JOSE", "", "JWT "):
        yield Bad(f"typ {kind!r}", KIND, signed(header=_header(typ=kind)))
    yield Bad("typ a list", KIND, signed(header=_header(typ=["JWT"])))


def _unencoded() -> str:
    payload = json.dumps(good_claims()).encode()
    header = b64(json.dumps(_header(b64=False, crit=["b64"])).encode())
    signature = main().sign(header.encode() + b"." + payload)
    return f"{header}.{b64(payload)}.{b64(signature)}"


def _shapes() -> Iterator[Bad]:
    def parts() -> list[str]:
        return main().token().split(".")

    yield Bad("empty", SHAPE, lambda: "")
    yield Bad("a word", SHAPE, lambda: "token")
    yield Bad("points only", SHAPE, lambda: "..")
    yield Bad("the signature stripped", SHAPE, lambda: ".".join(parts()[:2]))
    yield Bad("the signature emptied", SHAPE, lambda: ".".join(parts()[:2]) + ".")
    yield Bad("the header emptied", SHAPE, lambda: "." + ".".join(parts()[1:]))
    yield Bad("the payload emptied", SHAPE, lambda: "{0}..{2}".format(*parts()))
    yield Bad("four parts", SHAPE, lambda: main().token() + ".AAAA")
    yield Bad("five parts", SHAPE, lambda: main().token() + ".AAAA.AAAA")
    yield Bad(
        "an encrypted token, compressed",
        SHAPE,
        lambda: ".".join(
            [b64(json.dumps({"alg": "RSA-OAEP", "enc": "A128GCM", "zip": "DEF"}).encode()), *["AAAA"] * 4]
        ),
    )
    yield Bad(
        "the JSON form",
        SHAPE,
        lambda: json.dumps(dict(zip(("protected", "payload", "signature"), parts(), strict=True))),
    )
    for label, space in (
        ("blank", " "),
        ("tab", "\t"),
        ("line feed", "\n"),
        ("line end", "\r\n"),
        ("NUL", "\0"),
    ):
        yield Bad(f"a {label} before it", SHAPE, partial(_between, space, ""))
        yield Bad(f"a {label} after it", SHAPE, partial(_between, "", space))
    yield Bad("a blank in it", SHAPE, lambda: main().token().replace(".", ". ", 1))
    yield Bad("the scheme before it", SHAPE, lambda: "Bearer " + main().token())
    yield Bad("another token after a comma", SHAPE, lambda: f"{main().token()},{main().token()}")
    yield Bad("padding", SHAPE, lambda: "{}.{}.{}==".format(*parts()))
    yield Bad("base64 with + and /", SHAPE, lambda: "{}.{}.+/{}".format(*parts()))
    yield Bad("percent signs", SHAPE, lambda: main().token().replace(".", "%2E"))
    yield Bad("a letter too few", BASE64, _with_length_one_more)
    yield Bad("bits to spare in the signature", CANONICAL, lambda: _respelt(main().token()))
    yield Bad("bits to spare in the header", CANONICAL, _respelt_header)
    yield Bad("too long", LONG, lambda: main().token(good_claims(filler="x" * 13_000)))
    yield Bad("a million letters", LONG, lambda: "A" * 1_000_000)
    yield Bad("a million points", LONG, lambda: "." * 1_000_000)
    for label, text in (
        ("a letter beyond ASCII", "é"),
        ("a full-width point", "．"),
        ("a lone surrogate", "\udc80"),
        ("a zero-width blank", "\u200b"),
    ):
        yield Bad(label, LETTERS, partial(_between, "", text))
    yield Bad("half a signature", SIGNATURE, lambda: "{}.{}.{}".format(*parts()[:2], parts()[2][:172]))
    yield Bad(
        "a signature twice as long",
        SIGNATURE,
        lambda: "{}.{}.{}".format(*parts()[:2], b64(_raw(parts()[2]) * 2)),
    )
    yield Bad("a signature of zeros", SIGNATURE, lambda: "{}.{}.{}".format(*parts()[:2], b64(bytes(256))))
    yield Bad(
        "an elliptic signature of zeros",
        SIGNATURE,
        lambda: compact(_header(alg="ES256", kid="ec"), good_claims(), lambda data: bytes(64)),
    )
    yield Bad(
        "an Edwards signature of zeros",
        SIGNATURE,
        lambda: compact(_header(alg="EdDSA", kid="ed"), good_claims(), lambda data: bytes(64)),
    )
    yield Bad(
        "another token's signature",
        SIGNATURE,
        lambda: "{}.{}.{}".format(*parts()[:2], main().token(good_claims(sub="bob")).split(".")[2]),
    )
    yield Bad(
        "another token's payload",
        SIGNATURE,
        lambda: _with_payload_of(good_claims(sub="bob")),
    )


def _with_payload_of(claims: dict[str, Any]) -> str:
    header, _, signature = main().token().split(".")
    return f"{header}.{main().token(claims).split('.')[1]}.{signature}"


def _with_length_one_more() -> str:
    """A part whose length no bytes can have."""
    header, payload, _ = main().token().split(".")
    return f"{header}.{payload}.AAAAA"


def _respelt(token: str) -> str:
    """The same bytes, with other bits where base64 has some to spare: 256 bytes leave four."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return token[:-1] + letters[letters.index(token[-1]) ^ 1]


def _respelt_header() -> str:
    # Blanks are added until the length leaves bits to spare.
    text = json.dumps(_header()).encode()
    text += b" " * ((1 - len(text)) % 3)
    header, payload, signature = main().token(header=text).split(".")
    return f"{_respelt(header)}.{payload}.{signature}"


def _documents() -> Iterator[Bad]:
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
        ("a comma too many", good[:-1] + b",}"),
        ("a number of 5000 digits", good[:-1] + b',"x":' + b"9" * 5000 + b"}"),
        ("the user twice", good[:-1] + b',"sub":"admin"}'),
        ("the expiry twice", good[:-1] + b',"exp":9999999999}'),
        ("a name twice in an object inside", good[:-1] + b',"x":{"y":1,"y":2}}'),
        ("a name twice, once in escapes", good[:-1] + b',"\\u0073ub":"admin"}'),
    ):
        yield Bad(f"claims {label}", JSON, signed(document))
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
        yield Bad(f"header {label}", JSON, signed(header=document))


def _origins() -> Iterator[Bad]:
    for label, issuer in (
        ("missing", None),
        ("another", "https://login.example.org/realms/team"),
        ("with a slash more", ISSUER + "/"),
        ("in capitals", ISSUER.upper()),
        ("with a blank", ISSUER + " "),
        ("only begun", ISSUER[:-1]),
        ("with something added", ISSUER + ".evil.example"),
        ("empty", ""),
        ("a list", [ISSUER]),
        ("a number", 1),
        ("an object", {"iss": ISSUER}),
    ):
        yield Bad(f"issuer {label}", FROM, claims(iss=issuer))
    for label, audience in (
        ("missing", None),
        ("another", "https://other.example.com/mcp"),
        ("with a slash more", AUDIENCE + "/"),
        ("in capitals", AUDIENCE.upper()),
        ("only begun", AUDIENCE[:-1]),
        ("with something added", AUDIENCE + ".evil"),
        ("empty", ""),
        ("an empty list", []),
        ("a list of others", ["https://other.example.com/mcp", "account"]),
        ("a list with a number", [AUDIENCE, 1]),
        ("a list in a list", [[AUDIENCE]]),
        ("an object", {AUDIENCE: True}),
        ("true", True),
        ("texts in one", f"{AUDIENCE} account"),
    ):
        yield Bad(f"audience {label}", FOR, claims(aud=audience))
    yield Bad("audience null", FOR, signed({**good_claims(), "aud": None}))
    yield Bad("bound to a key", BOUND, claims(cnf={"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}))


def _times() -> Iterator[Bad]:
    now = int(NOW)
    for label, moment in (
        ("now, but for the leeway", now - 30),
        ("an hour ago", now - 3600),
        ("in 1970", 0),
        ("a moment too long ago", NOW - 30.001),
    ):
        yield Bad(f"expired {label}", EXPIRED, claims(exp=moment))
    yield Bad("expiry missing", ENDLESS, claims(exp=None))
    for name in ("exp", "nbf", "iat"):
        for label, value in (
            ("a text", str(now + 600)),
            ("true", True),
            ("a list", [now + 600]),
            ("an object", {"at": now}),
            ("negative", -1),
            ("beyond all dates", 10**18),
            ("of 400 digits", 10**400),
        ):
            yield Bad(f"{name} {label}", TIME, claims(**{name: value}))
        yield Bad(f"{name} null", TIME, signed({**good_claims(), name: None}))
        yield Bad(f"{name} without end", TIME, partial(_with_infinite, name))
    for name in ("nbf", "iat"):
        for label, moment in (("a moment too late", NOW + 30.001), ("in an hour", now + 3600)):
            yield Bad(f"{name} {label}", EARLY, claims(**{name: moment}))


def _with_infinite(name: str) -> str:
    text = json.dumps(good_claims(**{name: "HERE"})).replace('"HERE"', "1e999")
    return main().token(text.encode())


def _users() -> Iterator[Bad]:
    for label, user in (
        ("missing", None),
        ("empty", ""),
        ("too long", "a" * 201),
        ("a list", ["ann"]),
        ("a number", 7),
        ("true", True),
        ("an object", {"name": "ann"}),
    ):
        yield Bad(f"user {label}", USER, claims(sub=user))
    yield Bad("user null", USER, signed({**good_claims(), "sub": None}))
    for label, user in (
        ("with a line feed", "ann\nadmin"),
        ("with NUL", "ann\0"),
        ("with an escape", "ann\x1b[31m"),
        ("with DEL", "ann\x7f"),
        ("with a control character of Latin 1", "ann\x9b"),
        ("with a line separator", "ann\u2028admin"),
        ("with a lone surrogate", "ann\ud800"),
        ("written from right to left", "ann\u202enimda"),
        ("with a zero-width blank", "an\u200bn"),
        ("of a blank", " "),
        ("with a blank before", " ann"),
        ("with a blank after", "ann "),
    ):
        yield Bad(f"user {label}", NAME, claims(sub=user))
    for label, scopes in (
        ("a list", {"scope": ["dittybag:read"]}),
        ("a number", {"scope": 1}),
        ("an object", {"scope": {"dittybag:read": True}}),
        ("true", {"scope": True}),
        ("a list with a number", {"scp": ["dittybag:read", 1]}),
        ("a list in a list", {"scp": [["dittybag:read"]]}),
        ("an object for a list", {"scp": {"dittybag:read": True}}),
    ):
        yield Bad(f"scope {label}", SCOPES, claims(**scopes))
    yield Bad("scope null", SCOPES, signed({**good_claims(), "scope": None}))


BAD_TOKENS = list(_table())
