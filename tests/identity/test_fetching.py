"""Keys come from a server, from a file, or from where the issuer's metadata says; all of it with limits."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import json
import os
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from dittybag.identity import KeysUnavailable, OAuthSettings, OAuthVerifier, bounded_fetch, key_cache
from dittybag.identity.discovery import metadata_addresses
from dittybag.identity.identity_errors import FetchFailed
from tests.identity.issuer import Clock, Issuer, answer
from tests.identity.tokens import AUDIENCE, ISSUER, good_claims, rsa_key

KEY = rsa_key("main")
KEYS = json.dumps({"keys": [KEY.jwk]}).encode()


def certificate(folder: Path, name: str = "127.0.0.1") -> ssl.SSLContext:
    """TLS for a server with a certificate that it has made itself, in `folder`."""
    private = ec.generate_private_key(ec.SECP256R1())
    today = dt.datetime.now(dt.UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "issuer")])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(today - dt.timedelta(days=1))
        .not_valid_after(today + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(name))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
        .sign(private, hashes.SHA256())
    )
    (folder / "certificate.pem").write_bytes(made.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


async def test_keys_come_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    async with Issuer(KEY, tls=tls) as issuer:
        assert (await issuer.verifier().verify(KEY.token())).user == "ann"


async def test_a_server_that_cannot_prove_who_it_is_is_not_asked(tmp_path: Path) -> None:
    async with Issuer(KEY, tls=certificate(tmp_path)) as issuer:
        with pytest.raises(KeysUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            await issuer.verifier().verify(KEY.token())
        assert issuer.fetches == 0


async def test_a_certificate_for_another_server_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = certificate(tmp_path, "127.0.0.2")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    async with Issuer(KEY, tls=tls) as issuer:
        with pytest.raises(KeysUnavailable, match="IP address mismatch"):
            await issuer.verifier().verify(KEY.token())
        assert issuer.fetches == 0


async def test_a_request_is_plain_and_names_its_server() -> None:
    async with Issuer(KEY) as issuer:
        assert await bounded_fetch.get(f"{issuer.base}/keys") == KEYS
        assert issuer.heads == [
            f"GET /keys HTTP/1.1\r\nHost: 127.0.0.1:{issuer.port}\r\nAccept: application/json\r\n"
            "Accept-Encoding: identity\r\nUser-Agent: dittybag\r\nConnection: close\r\n\r\n".encode()
        ]
        with pytest.raises(FetchFailed, match="status 404"):
            await bounded_fetch.get(f"{issuer.base}?a=b")
        assert issuer.asked["/?a=b"] == 1


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
GOOD_ANSWERS = {
    "with a length": answer(KEYS),
    "in chunks": CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(KEYS), KEYS),
    "in small chunks": CHUNKED + b"".join(b"1\r\n%c\r\n" % byte for byte in KEYS) + b"0\r\n\r\n",
    "until the connection ends": b"HTTP/1.1 200 OK\r\n\r\n" + KEYS,
    "of HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\n" + KEYS,
    "after a word to wait": b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + answer(KEYS),
    "with something after it": answer(KEYS) + b"garbage",
}


@pytest.mark.parametrize("name", GOOD_ANSWERS)
async def test_answers_come_in_several_forms(name: str) -> None:
    async with Issuer() as issuer:
        issuer.answers["/keys"] = GOOD_ANSWERS[name]
        assert await bounded_fetch.get(f"{issuer.base}/keys") == KEYS


MUCH = 1024 * 1024
BAD_ANSWERS = {
    "nothing": (b"", "breaks off"),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-", "breaks off"),
    "half a body": (answer(KEYS)[:-1], "breaks off"),
    "half a chunk": (CHUNKED + b"ff\r\nhalf", "breaks off"),
    "no last chunk": (CHUNKED + b"2\r\n{}\r\n", "breaks off"),
    "something else": (b"SSH-2.0-OpenSSH_9.6\r\n", "not HTTP"),
    "two lengths": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "not HTTP"),
    "a negative length": (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", "not HTTP"),
    "another protocol": (
        b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
        "not HTTP",
    ),
    "an error": (answer(KEYS, "500 Internal Server Error"), "status 500"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", "status 204"),
    "a large body": (answer(b" " * MUCH + KEYS), "larger than 1024 KiB"),
    "a large body without a length": (
        b"HTTP/1.1 200 OK\r\n\r\n" + b" " * MUCH + KEYS,
        "larger than 1024 KiB",
    ),
    "a large head": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * MUCH, "larger than 1024 KiB"),
    "endless words to wait": (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 40_000, "larger than 1024 KiB"),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
async def test_other_answers_are_an_outage(name: str) -> None:
    said, problem = BAD_ANSWERS[name]
    async with Issuer() as issuer:
        issuer.answers["/keys"] = said
        with pytest.raises(KeysUnavailable, match=problem):
            await issuer.verifier().verify(KEY.token())


async def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert key_cache.DEADLINE == 5
    monkeypatch.setattr(key_cache, "DEADLINE", 0.05)
    async with Issuer(KEY) as issuer:
        issuer.is_awake.clear()
        with pytest.raises(KeysUnavailable, match="no answer within"):
            await issuer.verifier().verify(KEY.token())
        assert issuer.fetches == 1
        issuer.is_awake.set()


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Here", "308 There"])
async def test_redirects_are_followed_on_the_same_server(status: str) -> None:
    async with Issuer(KEY) as issuer:
        issuer.answers["/a/b"] = answer(b"", status, "Location: ../c?d")
        issuer.answers["/c?d"] = answer(b"", status, f"Location: {issuer.base}/keys")
        assert await bounded_fetch.get(f"{issuer.base}/a/b") == KEYS


async def test_redirects_to_another_server_are_not_followed() -> None:
    async with Issuer(KEY) as issuer, Issuer(KEY) as other:
        for elsewhere in (
            f"{other.base}/keys",
            f"//127.0.0.1:{other.port}/keys",
            f"http://localhost:{issuer.port}/keys",
            f"https://127.0.0.1:{issuer.port}/keys",
        ):
            issuer.answers["/a"] = answer(b"", "302 Found", f"Location: {elsewhere}")
            with pytest.raises(FetchFailed, match="to another server"):
                await bounded_fetch.get(f"{issuer.base}/a")
        for nowhere in (
            "http://example.com/",
            "ftp://127.0.0.1/",
            "file:///etc/passwd",
            "http://[",
            "/ a",
            "/\x80",
        ):
            issuer.answers["/a"] = answer(b"", "302 Found").replace(
                b"\r\n\r\n", b"\r\nLocation: " + nowhere.encode("latin-1") + b"\r\n\r\n"
            )
            with pytest.raises((FetchFailed, ValueError)):
                await bounded_fetch.get(f"{issuer.base}/a")
        assert other.fetches == issuer.fetches == 0


async def test_redirects_come_to_an_end() -> None:
    async with Issuer(KEY) as issuer:
        issuer.answers["/a"] = answer(b"", "302 Found", "Location: /a")
        with pytest.raises(FetchFailed, match="again and again"):
            await bounded_fetch.get(f"{issuer.base}/a")
        assert issuer.asked["/a"] == 4


def from_file(path: Path, clock: Clock) -> OAuthVerifier:
    return OAuthVerifier(OAuthSettings(issuer="team", audience=AUDIENCE, jwks=str(path)), now=clock)


async def test_keys_come_from_a_file_and_are_read_again(tmp_path: Path) -> None:
    clock, path, new = Clock(), tmp_path / "keys.json", rsa_key("new")
    path.write_bytes(KEYS)
    verifier = from_file(path, clock)
    assert (await verifier.verify(KEY.token(good_claims(iss="team")))).user == "ann"
    path.write_text(json.dumps({"keys": [new.jwk]}))
    assert (await verifier.verify(new.token(good_claims(iss="team")))).user == "ann"


async def test_what_is_not_a_small_file_is_not_read(tmp_path: Path) -> None:
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    large.write_bytes(KEYS + b" " * MUCH)
    for path, problem in (
        (tmp_path / "none", "No such file"),
        (tmp_path, "not a file"),
        (pipe, "not a file"),
        (large, "larger than"),
        (Path("/dev/zero"), "not a file"),
        (tmp_path / "\0", "ValueError"),
    ):
        async with asyncio.timeout(5):
            with pytest.raises(KeysUnavailable, match=problem):
                await from_file(path, Clock()).verify(KEY.token(good_claims(iss="team")))


def test_metadata_is_looked_for_where_mcp_says() -> None:
    assert metadata_addresses("https://login.example.com") == [
        "https://login.example.com/.well-known/oauth-authorization-server",
        "https://login.example.com/.well-known/openid-configuration",
    ]
    assert metadata_addresses("https://login.example.com/") == metadata_addresses("https://login.example.com")
    assert metadata_addresses("https://login.example.com:8443/realms/team/") == [
        "https://login.example.com:8443/.well-known/oauth-authorization-server/realms/team",
        "https://login.example.com:8443/.well-known/openid-configuration/realms/team",
        "https://login.example.com:8443/realms/team/.well-known/openid-configuration",
    ]


PLACES = (
    "/.well-known/oauth-authorization-server/realms/team",
    "/.well-known/openid-configuration/realms/team",
    "/realms/team/.well-known/openid-configuration",
)


@pytest.mark.parametrize("place", range(3))
async def test_an_issuers_metadata_says_where_its_keys_are(place: int) -> None:
    async with Issuer(KEY) as issuer:
        name = f"{issuer.base}/realms/team"
        issuer.answers[PLACES[place]] = answer({"issuer": name, "jwks_uri": f"{issuer.base}/keys"})
        verifier = issuer.verifier(issuer=name, jwks="")
        assert (await verifier.verify(KEY.token(good_claims(iss=name)))).user == "ann"
        assert list(issuer.asked) == [*PLACES[: place + 1], "/keys"]


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({}, "does not say where the keys are"),
        ({"issuer": "ISSUER"}, "does not say where the keys are"),
        ({"issuer": "ISSUER/", "jwks_uri": "BASE/keys"}, "of another issuer"),
        ({"issuer": "https://evil.example", "jwks_uri": "BASE/keys"}, "of another issuer"),
        ({"jwks_uri": "BASE/keys"}, "of another issuer"),
        ({"issuer": ["ISSUER"], "jwks_uri": "BASE/keys"}, "of another issuer"),
        ({"issuer": "ISSUER", "jwks_uri": ["BASE/keys"]}, "does not say where the keys are"),
        ({"issuer": "ISSUER", "jwks_uri": "http://example.com/keys"}, "must begin with https"),
        ({"issuer": "ISSUER", "jwks_uri": "file:///etc/passwd"}, "names no server"),
        ({"issuer": "ISSUER", "jwks_uri": "/keys"}, "names no server"),
        ({"issuer": "ISSUER", "jwks_uri": "https://a:b@example.com/"}, "user name"),
        ([], "not a JSON object"),
    ],
    ids=str,
)
async def test_metadata_that_cannot_be_trusted_is_not_used(metadata: object, problem: str) -> None:
    async with Issuer(KEY) as issuer:
        name = f"{issuer.base}/realms/team"
        text = json.dumps(metadata).replace("ISSUER", name).replace("BASE", issuer.base)
        issuer.answers[PLACES[0]] = answer(text.encode())
        with pytest.raises(KeysUnavailable, match=problem):
            await issuer.verifier(issuer=name, jwks="").verify(KEY.token(good_claims(iss=name)))
        assert issuer.fetches == 0


async def test_an_issuer_elsewhere_cannot_send_us_to_this_machine() -> None:
    asked = []

    async def fetch(url: str) -> bytes:
        asked.append(url)
        return json.dumps({"issuer": ISSUER, "jwks_uri": "https://127.0.0.1/keys"}).encode()

    verifier = OAuthVerifier(OAuthSettings(issuer=ISSUER, audience=AUDIENCE), fetch=fetch, now=Clock())
    with pytest.raises(KeysUnavailable, match="on this machine"):
        await verifier.verify(KEY.token())
    assert asked == metadata_addresses(ISSUER)
