"""Tokens that must be refused, each with the reason that is logged."""

from __future__ import annotations

import hashlib
import hmac
import json
import zlib
from base64 import urlsafe_b64decode
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
    Sign,
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


Make = Callable[[], str]
#: Bad tokens by reason and name.
Corpus = dict[str, dict[str, Make]]


class BadToken(Struct, frozen=True):
    """A token, created on demand, and the reason for refusing it."""

    name: str
    reason: str
    make: Make


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
) -> Make:
    """A token with a valid signature and any content."""
    return lambda: main().token(claims, header or _header())


def claims(**changes: Any) -> Make:
    return signed(good_claims(**changes))


def null_claim(name: str) -> Make:
    return signed({**good_claims(), name: None})


def header(**changes: Any) -> Make:
    return signed(header=_header(**changes))


def null_header(name: str) -> Make:
    return signed(header={**_header(), name: None})


def all_bad_tokens() -> Iterator[BadToken]:
    for corpus in (_algorithms, _keys, _headers, _shapes, _changes, _documents, _origins, _times, _users):
        for reason, tokens in corpus().items():
            for name, make in tokens.items():
                yield BadToken(name, reason, make)


def _algorithms() -> Corpus:
    nones = ("none", "None", "NONE", "nOnE")
    macs = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}
    others = ["RS384", "RS512", "PS384", "ES512", "ES256K", "RS1", "rs256", "RSA-OAEP", "dir", "A128KW"]
    refused: list[Any] = [*nones, *others, "", None, ["RS256"], 256, {"RS256": 1}, True]
    return {
        SHAPE: {f"alg {name}, no signature": partial(_mac, name, lambda data: b"") for name in nones},
        ALGORITHM: {
            **{f"alg {value!r}": header(alg=value) for value in refused},
            "alg null": null_header("alg"),
            "HS256 with a published secret": lambda: _secret().token(),
            "HS256 with an empty secret": partial(_mac, "HS256", _hmac(b"")),
            **{
                f"{name} with the public key as {form} as the secret": partial(_mac_of, name, secret, digest)
                for name, digest in macs.items()
                for form, secret in _public_forms()
            },
        },
        SIGNATURE: {
            **{
                f"alg {name} with an RS256 signature": header(alg=name)
                for name in ("PS256", "ES256", "ES384", "EdDSA")
            },
            "RS256 with a published secret": lambda: _secret().token(header=_header(kid="secret")),
            "alg ES256 with an ES384 key": lambda: ec_key("ec384", "ES384").token(
                header=_header(alg="ES256", kid="ec384")
            ),
            "alg RS256 with a key of another type": lambda: ed_key("ed").token(header=_header(kid="ed")),
        },
    }


def _mac(name: str, sign: Sign) -> str:
    return compact(_header(alg=name), good_claims(), sign)


def _mac_of(name: str, secret: Callable[[], bytes], digest: Any) -> str:
    return _mac(name, _hmac(secret(), digest))


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
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _keys() -> Corpus:
    ours = ("ec", "stranger", "../../../dev/null", "main' OR '1'='1", "main\0", "MAIN", " main", "/dev/null")
    inside: dict[str, Callable[[], Any]] = {
        "jwk": lambda: stranger().jwk,
        "jku": lambda: "http://127.0.0.1:1/keys",
        "x5u": lambda: "http://127.0.0.1:1/chain.pem",
        "x5c": lambda: ["MIIB"],
    }
    return {
        SIGNATURE: {
            "a stranger's key with its own id": lambda: stranger().token(),
            "a stranger's key with our id": lambda: stranger().token(header=_header()),
            "a stranger's key without an id": lambda: stranger().token(header=_header(kid=None)),
            "a stranger's EC key": lambda: ec_key("ec-stranger").token(header=_header(alg="ES256", kid="ec")),
            "a stranger's Edwards key": lambda: ed_key("ed-stranger").token(
                header=_header(alg="EdDSA", kid="ed")
            ),
            "another of our keys with our id": lambda: rsa_key("leaked").token(header=_header()),
            "no key id where two keys match": lambda: ec_key("ec").token(
                header=_header(alg="ES256", kid=None)
            ),
            "a point that is not on the curve": lambda: ec_key("off-curve").token(),
            "an RSA key of 1024 bits": lambda: weak().token(),
            "a key for encryption": lambda: rsa_key("encryption").token(),
            "a key whose private half is published": lambda: rsa_key("leaked").token(),
            **{f"our key with the id {kid!a}": header(kid=kid) for kid in ours},
            **{f"a stranger's key in {name}": partial(_stranger_with, name, inside[name]) for name in inside},
        },
        KEY_ID: {
            **{
                f"key id {str(kid)[:20]!r}": header(kid=kid) for kid in (1, ["main"], "", {"a": 1}, "k" * 201)
            },
            "key id null": null_header("kid"),
        },
    }


def _stranger_with(name: str, value: Callable[[], Any]) -> str:
    return stranger().token(header=_header(**{name: value()}))


def _headers() -> Corpus:
    types = ("logout+jwt", "dpop+jwt", "secevent+jwt", "JOSE", "", "JWT ", ["JWT"])
    return {
        HEADER: {
            **{f"crit {value!r}": header(crit=value) for value in (["exp"], [], "exp", ["b64"])},
            "crit null": null_header("crit"),
            "b64 false": _unencoded,
            "b64 false without crit": header(b64=False),
            "b64 true": header(b64=True),
            "zip": lambda: main().token(
                zlib.compress(json.dumps(good_claims()).encode()), _header(zip="DEF")
            ),
            "enc": header(enc="A128GCM"),
        },
        TYPE: {f"typ {type_!r}": header(typ=type_) for type_ in types},
    }


def _unencoded() -> str:
    payload = json.dumps(good_claims()).encode()
    header = b64(json.dumps(_header(b64=False, crit=["b64"])).encode())
    signature = main().sign(header.encode() + b"." + payload)
    return f"{header}.{b64(payload)}.{b64(signature)}"


def _parts() -> list[str]:
    return main().token().split(".")


def _shapes() -> Corpus:
    encrypted = b64(json.dumps({"alg": "RSA-OAEP", "enc": "A128GCM", "zip": "DEF"}).encode())
    spaces = (" ", "\t", "\n", "\r\n", "\0")
    return {
        SHAPE: {
            "empty": lambda: "",
            "a word": lambda: "token",
            "dots only": lambda: "..",
            "the signature stripped": lambda: ".".join(_parts()[:2]),
            "the signature emptied": lambda: ".".join(_parts()[:2]) + ".",
            "the header emptied": lambda: "." + ".".join(_parts()[1:]),
            "the payload emptied": lambda: "{0}..{2}".format(*_parts()),
            "four parts": lambda: main().token() + ".AAAA",
            "five parts": lambda: main().token() + ".AAAA.AAAA",
            "an encrypted token, compressed": lambda: ".".join([encrypted, *["AAAA"] * 4]),
            "the JSON form": lambda: json.dumps(
                dict(zip(("protected", "payload", "signature"), _parts(), strict=True))
            ),
            **{f"{space!r} before it": partial(_surrounded, space, "") for space in spaces},
            **{f"{space!r} after it": partial(_surrounded, "", space) for space in spaces},
            "a space in it": lambda: main().token().replace(".", ". ", 1),
            "the scheme before it": lambda: "Bearer " + main().token(),
            "another token after a comma": lambda: f"{main().token()},{main().token()}",
            "padding": lambda: "{}.{}.{}==".format(*_parts()),
            "base64 with + and /": lambda: "{}.{}.+/{}".format(*_parts()),
            "percent signs": lambda: main().token().replace(".", "%2E"),
        },
        # A part whose length is not possible in base64.
        BASE64: {"an impossible length": lambda: "{}.{}.AAAAA".format(*_parts())},
        CANONICAL: {
            "unused bits set in the signature": lambda: _with_unused_bits(main().token()),
            "unused bits set in the header": _header_with_unused_bits,
        },
        LONG: {
            "too long": lambda: main().token(good_claims(filler="x" * 13_000)),
            "a million characters": lambda: "A" * 1_000_000,
            "a million dots": lambda: "." * 1_000_000,
        },
        # A letter, a full-width dot, a lone surrogate and a zero-width space.
        NOT_ASCII: {f"{text!a} after it": partial(_surrounded, "", text) for text in "é．\udc80\u200b"},
    }


def _surrounded(before: str, after: str) -> str:
    return before + main().token() + after


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


def _changes() -> Corpus:
    return {
        SIGNATURE: {
            "half a signature": lambda: _with_signature(_raw(_parts()[2])[:129]),
            "a signature twice as long": lambda: _with_signature(_raw(_parts()[2]) * 2),
            "a signature of zeros": lambda: _with_signature(bytes(256)),
            "an EC signature of zeros": partial(_signed_with_zeros, "ES256", "ec"),
            "an Edwards signature of zeros": partial(_signed_with_zeros, "EdDSA", "ed"),
            "another token's signature": lambda: ".".join([*_parts()[:2], _parts_of_bob()[2]]),
            "another token's payload": lambda: ".".join([_parts()[0], _parts_of_bob()[1], _parts()[2]]),
        }
    }


def _with_signature(signature: bytes) -> str:
    return ".".join([*_parts()[:2], b64(signature)])


def _signed_with_zeros(algorithm: str, kid: str) -> str:
    return compact(_header(alg=algorithm, kid=kid), good_claims(), lambda data: bytes(64))


def _parts_of_bob() -> list[str]:
    return main().token(good_claims(sub="bob")).split(".")


def _documents() -> Corpus:
    good = json.dumps(good_claims()).encode()
    head = json.dumps(_header()).encode()
    claim_documents = {
        "not JSON": b"claims",
        "nothing": b" ",
        "a list": b"[" + good + b"]",
        "a text": b'"ann"',
        "null": b"null",
        "cut off": good[:-1],
        "two objects": good + good,
        "not UTF-8": good.replace(b"ann", b"\xff\xfe"),
        "UTF-16": good.decode().encode("utf-16"),
        "with a byte order mark": b"\xef\xbb\xbf" + good,
        "nested deeply": b'{"a":' * 1000 + b"1" + b"}" * 1000,
        "of many lists": good[:-1] + b',"x":[' + b"[]," * 500 + b"1]}",
        "NaN": good.replace(b'"ann"', b'"ann","x":NaN'),
        "Infinity": good.replace(b'"ann"', b'"ann","x":Infinity'),
        "single quotes": good.replace(b'"', b"'"),
        "a trailing comma": good[:-1] + b",}",
        "a number of 5000 digits": good[:-1] + b',"x":' + b"9" * 5000 + b"}",
        "the user twice": good[:-1] + b',"sub":"admin"}',
        "the expiry twice": good[:-1] + b',"exp":9999999999}',
        "a duplicate name in a nested object": good[:-1] + b',"x":{"y":1,"y":2}}',
        "a duplicate name with escapes": good[:-1] + b',"\\u0073ub":"admin"}',
    }
    header_documents = {
        "not JSON": b"header",
        "a list": b"[" + head + b"]",
        "not UTF-8": head.replace(b"main", b"\xff\xfe"),
        "UTF-16": head.decode().encode("utf-16"),
        "the algorithm twice": head[:-1] + b',"alg":"none"}',
        "the key id twice": head[:-1] + b',"kid":"ec"}',
        "nested deeply": b'{"a":' * 1000 + b"1" + b"}" * 1000,
    }
    return {
        JSON: {
            **{f"claims {label}": signed(document) for label, document in claim_documents.items()},
            **{f"header {label}": signed(header=document) for label, document in header_documents.items()},
        }
    }


def _origins() -> Corpus:
    issuers: list[Any] = [
        *(None, "", 1, [ISSUER], {"iss": ISSUER}, "https://login.example.org/realms/team"),
        *(ISSUER + "/", ISSUER.upper(), ISSUER + " ", ISSUER[:-1], ISSUER + ".evil.example"),
    ]
    elsewhere = "https://other.example.com/mcp"
    audiences: list[Any] = [
        *(None, "", [], True, {AUDIENCE: True}, [AUDIENCE, 1], [[AUDIENCE]], elsewhere),
        *(AUDIENCE + "/", AUDIENCE.upper(), AUDIENCE[:-1], AUDIENCE + ".evil", f"{AUDIENCE} account"),
        [elsewhere, "account"],
    ]
    bound = claims(cnf={"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"})
    return {
        ISSUED_BY: {f"issuer {issuer!r}": claims(iss=issuer) for issuer in issuers},
        ISSUED_FOR: {
            **{f"audience {audience!r}": claims(aud=audience) for audience in audiences},
            "audience null": null_claim("aud"),
        },
        BOUND: {"bound to a key": bound},
    }


def _times() -> Corpus:
    now = int(NOW)
    invalid: list[Any] = [str(now + 600), True, [now + 600], {"at": now}, -1, 10**18, 10**400]
    return {
        EXPIRED: {f"exp {time}": claims(exp=time) for time in (now - 30, now - 3600, 0, NOW - 30.001)},
        NO_EXPIRY: {"expiry missing": claims(exp=None)},
        EARLY: {
            f"{name} {time}": claims(**{name: time})
            for name in ("nbf", "iat")
            for time in (NOW + 30.001, now + 3600)
        },
        **{
            f"{name} is not a valid time": {
                **{f"{name} {str(value)[:20]!r}": claims(**{name: value}) for value in invalid},
                f"{name} null": null_claim(name),
                f"{name} infinite": partial(_with_infinite, name),
            }
            for name in ("exp", "nbf", "iat")
        },
    }


def _with_infinite(name: str) -> str:
    text = json.dumps(good_claims(**{name: "HERE"})).replace('"HERE"', "1e999")
    return main().token(text.encode())


def _users() -> Corpus:
    users: list[Any] = [None, "", "a" * 201, ["ann"], 7, True, {"name": "ann"}]
    # A control character, a line separator, a lone surrogate, a right-to-left override, a zero-width space.
    hidden = ("\n", "\0", "\x1b[31m", "\x7f", "\x9b", "\u2028", "\ud800", "\u202e", "\u200b")
    names = [*(f"ann{text}admin" for text in hidden), " ", " ann", "ann "]
    scopes: list[Any] = [["dittybag:read"], 1, {"dittybag:read": True}, True]
    lists: list[Any] = [["dittybag:read", 1], [["dittybag:read"]], {"dittybag:read": True}]
    return {
        USER: {
            **{f"user {str(user)[:20]!r}": claims(sub=user) for user in users},
            "user null": null_claim("sub"),
        },
        NAME: {f"user {name!a}": claims(sub=name) for name in names},
        SCOPES: {
            **{f"scope {value!r}": claims(scope=value) for value in scopes},
            **{f"scp {value!r}": claims(scp=value) for value in lists},
            "scope null": null_claim("scope"),
        },
    }


BAD_TOKENS = list(all_bad_tokens())
