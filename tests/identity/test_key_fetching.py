"""Keys are fetched from a server, from a file, or through the issuer's metadata, with limits."""

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

from dittybag.identity import bounded_fetch, key_cache
from dittybag.identity.discovery import metadata_urls
from dittybag.identity.identity_errors import FetchFailed, KeysUnavailable
from dittybag.identity.oauth_settings import OAuthSettings
from dittybag.identity.token_verifier import OAuthVerifier
from tests.identity.jwt_builder import AUDIENCE, ISSUER, good_claims, rsa_key
from tests.identity.oauth_issuer import Clock, Issuer, http_response

KEY = rsa_key("main")
KEYS = json.dumps({"keys": [KEY.jwk]}).encode()


def certificate(folder: Path, name: str = "127.0.0.1") -> ssl.SSLContext:
    """Return a server TLS context with a self-signed certificate, stored in `folder`."""
    private = ec.generate_private_key(ec.SECP256R1())
    today = dt.datetime.now(dt.UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "issuer")])
    signed = (
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
    (folder / "certificate.pem").write_bytes(signed.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


async def test_keys_are_fetched_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    async with Issuer(KEY, tls=tls) as issuer:
        assert (await issuer.verifier().verify(KEY.token())).user == "ann"


async def test_a_server_with_an_untrusted_certificate_gets_no_request(tmp_path: Path) -> None:
    async with Issuer(KEY, tls=certificate(tmp_path)) as issuer:
        with pytest.raises(KeysUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            await issuer.verifier().verify(KEY.token())
        assert issuer.fetches == 0


async def test_a_certificate_for_another_host_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = certificate(tmp_path, "127.0.0.2")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    async with Issuer(KEY, tls=tls) as issuer:
        with pytest.raises(KeysUnavailable, match="IP address mismatch"):
            await issuer.verifier().verify(KEY.token())
        assert issuer.fetches == 0


async def test_a_request_has_exactly_these_headers() -> None:
    async with Issuer(KEY) as issuer:
        assert await bounded_fetch.get(f"{issuer.base}/keys") == KEYS
        assert issuer.heads == [
            f"GET /keys HTTP/1.1\r\nHost: 127.0.0.1:{issuer.port}\r\nAccept: application/json\r\n"
            "Accept-Encoding: identity\r\nUser-Agent: dittybag\r\nConnection: close\r\n\r\n".encode()
        ]
        with pytest.raises(FetchFailed, match="status 404"):
            await bounded_fetch.get(f"{issuer.base}?a=b")
        assert issuer.requests["/?a=b"] == 1


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
VALID_RESPONSES = {
    "with a length": http_response(KEYS),
    "in chunks": CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(KEYS), KEYS),
    "in small chunks": CHUNKED + b"".join(b"1\r\n%c\r\n" % byte for byte in KEYS) + b"0\r\n\r\n",
    "until the connection ends": b"HTTP/1.1 200 OK\r\n\r\n" + KEYS,
    "in HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\n" + KEYS,
    "after early hints": b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + http_response(KEYS),
    "with trailing bytes": http_response(KEYS) + b"garbage",
}


@pytest.mark.parametrize("name", VALID_RESPONSES)
async def test_all_forms_of_http_responses_are_read(name: str) -> None:
    async with Issuer() as issuer:
        issuer.responses["/keys"] = VALID_RESPONSES[name]
        assert await bounded_fetch.get(f"{issuer.base}/keys") == KEYS


LARGE = 1024 * 1024
INVALID_RESPONSES = {
    "nothing": (b"", "incomplete"),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-", "incomplete"),
    "half a body": (http_response(KEYS)[:-1], "incomplete"),
    "half a chunk": (CHUNKED + b"ff\r\nhalf", "incomplete"),
    "no last chunk": (CHUNKED + b"2\r\n{}\r\n", "incomplete"),
    "another server": (b"SSH-2.0-OpenSSH_9.6\r\n", "not valid HTTP"),
    "two lengths": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "not valid HTTP"),
    "a negative length": (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", "not valid HTTP"),
    "another protocol": (
        b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
        "not valid HTTP",
    ),
    "an error": (http_response(KEYS, "500 Internal Server Error"), "status 500"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", "status 204"),
    "a large body": (http_response(b" " * LARGE + KEYS), "larger than 1024 KiB"),
    "a large body without a length": (
        b"HTTP/1.1 200 OK\r\n\r\n" + b" " * LARGE + KEYS,
        "larger than 1024 KiB",
    ),
    "a large head": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * LARGE, "larger than 1024 KiB"),
    "endless early hints": (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 40_000, "larger than 1024 KiB"),
}


@pytest.mark.parametrize("name", INVALID_RESPONSES)
async def test_an_invalid_response_counts_as_an_outage(name: str) -> None:
    response, problem = INVALID_RESPONSES[name]
    async with Issuer() as issuer:
        issuer.responses["/keys"] = response
        with pytest.raises(KeysUnavailable, match=problem):
            await issuer.verifier().verify(KEY.token())


async def test_a_server_that_does_not_respond_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert key_cache.FETCH_TIMEOUT == 5
    monkeypatch.setattr(key_cache, "FETCH_TIMEOUT", 0.05)
    async with Issuer(KEY) as issuer:
        issuer.is_responding.clear()
        with pytest.raises(KeysUnavailable, match="no response within"):
            await issuer.verifier().verify(KEY.token())
        assert issuer.fetches == 1
        issuer.is_responding.set()


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Here", "308 There"])
async def test_redirects_are_followed_on_the_same_server(status: str) -> None:
    async with Issuer(KEY) as issuer:
        issuer.responses["/a/b"] = http_response(b"", status, "Location: ../c?d")
        issuer.responses["/c?d"] = http_response(b"", status, f"Location: {issuer.base}/keys")
        assert await bounded_fetch.get(f"{issuer.base}/a/b") == KEYS


async def test_redirects_to_another_server_are_not_followed() -> None:
    async with Issuer(KEY) as issuer, Issuer(KEY) as other:
        for target in (
            f"{other.base}/keys",
            f"//127.0.0.1:{other.port}/keys",
            f"http://localhost:{issuer.port}/keys",
            f"https://127.0.0.1:{issuer.port}/keys",
        ):
            issuer.responses["/a"] = http_response(b"", "302 Found", f"Location: {target}")
            with pytest.raises(FetchFailed, match="to another server"):
                await bounded_fetch.get(f"{issuer.base}/a")
        for target in (
            "http://example.com/",
            "ftp://127.0.0.1/",
            "file:///etc/passwd",
            "http://[",
            "/ a",
            "/\x80",
        ):
            issuer.responses["/a"] = http_response(b"", "302 Found").replace(
                b"\r\n\r\n", b"\r\nLocation: " + target.encode("latin-1") + b"\r\n\r\n"
            )
            with pytest.raises((FetchFailed, ValueError)):
                await bounded_fetch.get(f"{issuer.base}/a")
        assert other.fetches == issuer.fetches == 0


async def test_endless_redirects_are_not_followed() -> None:
    async with Issuer(KEY) as issuer:
        issuer.responses["/a"] = http_response(b"", "302 Found", "Location: /a")
        with pytest.raises(FetchFailed, match="more than 3 redirects"):
            await bounded_fetch.get(f"{issuer.base}/a")
        assert issuer.requests["/a"] == 4


def file_verifier(path: Path, clock: Clock) -> OAuthVerifier:
    return OAuthVerifier(OAuthSettings(issuer="team", audience=AUDIENCE, jwks=str(path)), now=clock)


async def test_a_key_file_is_read_again_after_a_change(tmp_path: Path) -> None:
    clock, path, new = Clock(), tmp_path / "keys.json", rsa_key("new")
    path.write_bytes(KEYS)
    verifier = file_verifier(path, clock)
    assert (await verifier.verify(KEY.token(good_claims(iss="team")))).user == "ann"
    path.write_text(json.dumps({"keys": [new.jwk]}))
    assert (await verifier.verify(new.token(good_claims(iss="team")))).user == "ann"


async def test_only_small_regular_files_are_read(tmp_path: Path) -> None:
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    large.write_bytes(KEYS + b" " * LARGE)
    for path, problem in (
        (tmp_path / "none", "No such file"),
        (tmp_path, "not a regular file"),
        (pipe, "not a regular file"),
        (large, "larger than"),
        (Path("/dev/zero"), "not a regular file"),
        (tmp_path / "\0", "ValueError"),
    ):
        async with asyncio.timeout(5):
            with pytest.raises(KeysUnavailable, match=problem):
                await file_verifier(path, Clock()).verify(KEY.token(good_claims(iss="team")))


def test_metadata_urls_follow_mcp_authorization() -> None:
    assert metadata_urls("https://login.example.com") == [
        "https://login.example.com/.well-known/oauth-authorization-server",
        "https://login.example.com/.well-known/openid-configuration",
    ]
    assert metadata_urls("https://login.example.com/") == metadata_urls("https://login.example.com")
    assert metadata_urls("https://login.example.com:8443/realms/team/") == [
        "https://login.example.com:8443/.well-known/oauth-authorization-server/realms/team",
        "https://login.example.com:8443/.well-known/openid-configuration/realms/team",
        "https://login.example.com:8443/realms/team/.well-known/openid-configuration",
    ]


METADATA_PATHS = (
    "/.well-known/oauth-authorization-server/realms/team",
    "/.well-known/openid-configuration/realms/team",
    "/realms/team/.well-known/openid-configuration",
)


@pytest.mark.parametrize("index", range(3))
async def test_the_metadata_of_an_issuer_gives_the_key_url(index: int) -> None:
    async with Issuer(KEY) as issuer:
        name = f"{issuer.base}/realms/team"
        issuer.responses[METADATA_PATHS[index]] = http_response(
            {"issuer": name, "jwks_uri": f"{issuer.base}/keys"}
        )
        verifier = issuer.verifier(issuer=name, jwks="")
        assert (await verifier.verify(KEY.token(good_claims(iss=name)))).user == "ann"
        assert list(issuer.requests) == [*METADATA_PATHS[: index + 1], "/keys"]


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({}, "no valid jwks_uri"),
        ({"issuer": "ISSUER"}, "no valid jwks_uri"),
        ({"issuer": "ISSUER/", "jwks_uri": "BASE/keys"}, "belongs to another issuer"),
        ({"issuer": "https://evil.example", "jwks_uri": "BASE/keys"}, "belongs to another issuer"),
        ({"jwks_uri": "BASE/keys"}, "belongs to another issuer"),
        ({"issuer": ["ISSUER"], "jwks_uri": "BASE/keys"}, "belongs to another issuer"),
        ({"issuer": "ISSUER", "jwks_uri": ["BASE/keys"]}, "no valid jwks_uri"),
        ({"issuer": "ISSUER", "jwks_uri": "http://example.com/keys"}, "must start with https"),
        ({"issuer": "ISSUER", "jwks_uri": "file:///etc/passwd"}, "no valid host"),
        ({"issuer": "ISSUER", "jwks_uri": "/keys"}, "no valid host"),
        ({"issuer": "ISSUER", "jwks_uri": "https://a:b@example.com/"}, "user name"),
        ([], "not a JSON object"),
    ],
    ids=str,
)
async def test_metadata_that_cannot_be_trusted_is_not_used(metadata: object, problem: str) -> None:
    async with Issuer(KEY) as issuer:
        name = f"{issuer.base}/realms/team"
        text = json.dumps(metadata).replace("ISSUER", name).replace("BASE", issuer.base)
        issuer.responses[METADATA_PATHS[0]] = http_response(text.encode())
        with pytest.raises(KeysUnavailable, match=problem):
            await issuer.verifier(issuer=name, jwks="").verify(KEY.token(good_claims(iss=name)))
        assert issuer.fetches == 0


async def test_a_remote_issuer_cannot_redirect_to_this_machine() -> None:
    requested = []

    async def fetch(url: str) -> bytes:
        requested.append(url)
        return json.dumps({"issuer": ISSUER, "jwks_uri": "https://127.0.0.1/keys"}).encode()

    verifier = OAuthVerifier(OAuthSettings(issuer=ISSUER, audience=AUDIENCE), fetch=fetch, now=Clock())
    with pytest.raises(KeysUnavailable, match="to this machine"):
        await verifier.verify(KEY.token())
    assert requested == metadata_urls(ISSUER)
