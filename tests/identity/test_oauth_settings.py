"""Invalid or unsafe OAuth settings are refused, and a missing PyJWT is reported."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from dittybag.identity.identity_errors import OAuthMisconfigured
from dittybag.identity.oauth_settings import OAuthSettings
from dittybag.identity.token_verifier import OAuthVerifier
from tests.identity.jwt_builder import AUDIENCE, ISSUER


def create_verifier(**changes: Any) -> OAuthVerifier:
    return OAuthVerifier(OAuthSettings(**{"issuer": ISSUER, "audience": AUDIENCE, **changes}))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"issuer": "http://localhost:8080/realms/team"},
        {"issuer": "http://127.0.0.1:8080"},
        {"issuer": "http://[::1]:8080"},
        {"issuer": "any text at all", "jwks": "/etc/dittybag/keys.json"},
        {"issuer": "any text at all", "jwks": "https://login.example.com/keys?x=y"},
        {"jwks": "keys.json", "scope_prefix": "", "leeway_seconds": 0},
        {"algorithms": ("RS512", "PS384", "ES512")},
    ],
    ids=str,
)
def test_valid_settings_are_accepted(changes: dict[str, Any]) -> None:
    create_verifier(**changes)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"issuer": ""}, "needs an issuer"),
        ({"audience": ""}, "needs an audience"),
        ({"issuer": "login.example.com"}, "issuer is not valid: the URL has no valid host"),
        ({"issuer": "http://login.example.com"}, "must start with https"),
        ({"issuer": "http://127.0.0.1.example.com"}, "must start with https"),
        ({"issuer": "http://localhost.example.com"}, "must start with https"),
        ({"issuer": "http://127.1"}, "must start with https"),
        ({"issuer": "ftp://login.example.com"}, "must start with https"),
        ({"issuer": "https://ann:secret@login.example.com"}, "user name"),
        ({"issuer": "https://login.example.com?x"}, "query"),
        ({"issuer": "https://login.example.com#x"}, "fragment"),
        ({"issuer": "https://login.example.com:x"}, "is not valid"),
        ({"issuer": "https://login.example.com:0"}, "no valid host"),
        ({"issuer": "https://"}, "no valid host"),
        ({"issuer": "https://[::1"}, "is not valid"),
        ({"issuer": "https://login.example.com/\r\nX: y"}, "characters"),
        ({"issuer": "https://login.example.com/ x"}, "characters"),
        ({"issuer": "https://lögin.example.com"}, "characters"),
        ({"issuer": "https://login.example.com/" + "x" * 2000}, "2000 characters"),
        ({"jwks": "http://login.example.com/keys"}, r"JWKS URL is not valid: .* https"),
        ({"jwks": "file:///etc/keys.json"}, "JWKS URL is not valid"),
        ({"algorithms": ()}, "at least one algorithm"),
        ({"user_claim": ""}, "claim"),
        ({"scope_prefix": "a b"}, "prefix"),
        ({"scope_prefix": 'a"'}, "prefix"),
        ({"leeway_seconds": -1}, "leeway"),
        ({"leeway_seconds": 301}, "leeway"),
    ],
    ids=str,
)
def test_invalid_settings_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(OAuthMisconfigured, match=problem) as refused:
        create_verifier(**changes)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "algorithm", ["HS256", "HS384", "HS512", "none", "None", "rs256", "", "ES256K", "RS1"]
)
def test_only_algorithms_with_public_keys_are_accepted(algorithm: str) -> None:
    with pytest.raises(OAuthMisconfigured, match="is not supported"):
        create_verifier(algorithms=("RS256", algorithm))


PROGRAM = """
import sys
from dittybag.identity.identity_errors import OAuthNotInstalled
from dittybag.identity.oauth_settings import OAuthSettings
from dittybag.identity.token_verifier import OAuthVerifier

print(*sorted({"jwt", "cryptography", "json"} & set(sys.modules)))
for name in sys.argv[1:]:
    sys.modules[name] = None
try:
    OAuthVerifier(OAuthSettings(issuer="https://login.example.com", audience="dittybag"))
except OAuthNotInstalled as error:
    print(error)
else:
    print("created")
"""


@pytest.mark.parametrize("missing", [["jwt"], ["cryptography"], ["jwt", "cryptography"]], ids="+".join)
def test_without_pyjwt_the_error_says_what_to_install(missing: list[str]) -> None:
    assert run(*missing)[1] == (
        "OAuth needs PyJWT and cryptography, which are not installed: pip install 'dittybag[oauth]'"
    )


def test_pyjwt_is_not_loaded_before_it_is_needed() -> None:
    assert run() == ["", "created"]


def run(*missing: str) -> list[str]:
    command = [sys.executable, "-W", "error", "-c", PROGRAM, *missing]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.splitlines()
