"""`dittybag user` and `dittybag token`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from dittybag.cli.param_types import parse_expiry
from tests.cli.cli_runner import data, dittybag


def create_token(home: Path, *options: str) -> str:
    return dittybag(home, "token", "create", *options).stdout.strip()


def test_users_are_added_listed_disabled_and_enabled(tmp_path: Path) -> None:
    none = dittybag(tmp_path, "user", "list")
    assert (none.stdout, none.stderr) == (
        "",
        "No users yet\nhint: to add a user, run: dittybag user add NAME\n",
    )
    added = dittybag(tmp_path, "user", "add", "alice")
    assert added.stdout == "Added user 'alice'\n"
    assert "dittybag token create --user alice --scope write" in added.stderr
    dittybag(tmp_path, "user", "add", "bob@example.org")
    create_token(tmp_path, "--user", "alice", "--scope", "read")
    create_token(tmp_path, "--user", "alice", "--scope", "write")
    result = dittybag(tmp_path, "user", "disable", "alice")
    assert result.stdout == "Disabled user 'alice' and revoked 2 tokens\n"
    again = dittybag(tmp_path, "user", "disable", "alice")
    assert again.stdout == "Disabled user 'alice' and revoked 0 tokens\n"
    listed = dittybag(tmp_path, "user", "list").stdout
    assert re.search(r"^alice +\d{4}-\d\d-\d\d  disabled$", listed, re.MULTILINE)
    assert re.search(r"^bob@example.org +\d{4}-\d\d-\d\d  active$", listed, re.MULTILINE)
    refused = dittybag(tmp_path, "token", "create", "--user", "alice", "--scope", "read", status=4)
    assert (refused.stdout, refused.stderr) == ("", "error: User 'alice' is disabled\n")
    assert dittybag(tmp_path, "user", "enable", "alice").stdout == "Enabled user 'alice'\n"
    # The old tokens stay revoked.
    assert dittybag(tmp_path, "token", "list", "--user", "alice").stdout == ""
    create_token(tmp_path, "--user", "alice", "--scope", "read")


def test_only_the_token_is_printed_to_standard_output(tmp_path: Path) -> None:
    dittybag(tmp_path, "user", "add", "alice")
    create = ("token", "create", "--user", "ALICE", "--scope", "write")
    result = dittybag(tmp_path, *create, "--label", "laptop", "--expires", "30d")
    assert re.fullmatch(r"dittybag_[A-Za-z0-9_-]{49}\n", result.stdout)
    assert re.fullmatch(
        r"Token 1 for alice \(write, until \d{4}-\d\d-\d\dT[\d:]+Z\)\. It is shown only once:\n",
        result.stderr,
    )
    assert data(dittybag(tmp_path, *create, "--json"))["token"].startswith("dittybag_")


def test_tokens_are_listed_and_revoked(tmp_path: Path) -> None:
    for name in ("alice", "bob"):
        dittybag(tmp_path, "user", "add", name)
    tokens = [
        create_token(tmp_path, "--user", "alice", "--scope", "read", "--label", "laptop"),
        create_token(tmp_path, "--user", "alice", "--scope", "write", "--expires", "2199-12-31"),
        create_token(tmp_path, "--user", "bob", "--scope", "admin"),
    ]
    listed = dittybag(tmp_path, "token", "list").stdout
    lines = listed.splitlines()
    assert lines[0].split() == ["id", "user", "scope", "token", "state", "expires", "used", "label"]
    assert " ".join(lines[1].split()) == f"1 alice read ...{tokens[0][-4:]} active never never laptop"
    assert lines[2].split()[5].startswith("2199-12-3")
    for token in tokens:
        assert token not in listed
        assert token[8:20] not in listed
    assert dittybag(tmp_path, "token", "list", "--user", "bob").stdout.count("\n") == 2
    assert dittybag(tmp_path, "token", "revoke", "1", "3").stdout == (
        "Revoked token 1 of user 'alice'\nRevoked token 3 of user 'bob'\n"
    )
    # All or none.
    dittybag(tmp_path, "token", "revoke", "2", "99", status=3)
    shown = data(dittybag(tmp_path, "token", "list", "--json"))["tokens"]
    assert [(token["id"], token["state"]) for token in shown] == [(2, "active")]
    everything = data(dittybag(tmp_path, "token", "list", "--include-revoked", "--json"))["tokens"]
    assert [(token["id"], token["state"]) for token in everything] == [
        (1, "revoked"),
        (2, "active"),
        (3, "revoked"),
    ]
    assert data(dittybag(tmp_path, "token", "revoke", "2", "--json")) == {"revoked": [2]}
    none = dittybag(tmp_path, "token", "list")
    assert (none.stdout, none.stderr) == (
        "",
        "No tokens found\nhint: to create a token, run: dittybag token create --user NAME --scope write\n",
    )


NOW = datetime(2026, 11, 15, 14, 30, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("12h", NOW + timedelta(hours=12)),
        ("30d", NOW + timedelta(days=30)),
        (" 8 W ", NOW + timedelta(weeks=8)),
        ("1y", NOW + timedelta(days=365)),
        ("2027-01-01", datetime(2027, 1, 1, tzinfo=NOW.tzinfo)),
        ("2026-11-15 14:31", NOW + timedelta(minutes=1)),
        ("2026-11-15T13:31:00+00:00", NOW + timedelta(minutes=1)),
    ],
)
def test_expiry_times_are_parsed(words: str, expected: datetime) -> None:
    assert parse_expiry(words, NOW) == expected


@pytest.mark.parametrize(
    "words", ["", "d", "0d", "-1d", "1.5d", "2026-11-15", "2026-11-15 14:30", "١d", "1d 2h"]
)
def test_invalid_expiry_times_are_rejected(words: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # it has no message
        parse_expiry(words, NOW)
