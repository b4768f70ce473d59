"""`dittybag token`: manage the access tokens of users."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

import click

from dittybag.cli.colours import GREY
from dittybag.cli.output import format_time, print_aside, print_list, print_result
from dittybag.cli.param_types import expiry_time
from dittybag.cli.read_input import text
from dittybag.cli.strict_options import StrictGroup
from dittybag.cli.whole_numbers import POSITIVE
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.accounts import SCOPES, Scope, Token
from dittybag.domain.entities import struct_data
from dittybag.domain.times import iso


@click.group("token", StrictGroup)
def command() -> None:
    """Manage access tokens, which authenticate users over HTTP.

    A server started with `dittybag serve --http --auth tokens` requires a token. Clients send it as
    `Authorization: Bearer TOKEN`.
    """


@command.command("create")
@click.option(
    "--user", "name", required=True, metavar="NAME", type=text, help="User that the token belongs to."
)
@click.option(
    "--scope",
    required=True,
    type=click.Choice(SCOPES),
    help="Access level; `admin` also allows reading metrics.",
)
@click.option(
    "--expires",
    metavar="WHEN",
    type=expiry_time,
    help="Expiry time, such as 30d or 2027-01-01 (default: never).",
)
@click.option("--label", metavar="TEXT", type=text, default="", help="Description of the token.")
@in_workspace
def create(name: str, scope: Scope, expires: int | None, label: str, options: WorkspaceOptions) -> None:
    """Create a token and print it. It is shown only once; the database stores only a hash.

    \b
    Examples:
      dittybag token create --user alice --scope read --expires 30d
      TOKEN=$(dittybag token create --user ci --scope write --label deploy)
    """
    created = options.run(
        lambda session: session.workspace.accounts.create_token(
            name, scope, actor=session.caller.actor, label=label, expires_at=expires
        )
    )
    token = created.token
    until = "" if token.expires_at is None else f", until {iso(token.expires_at)}"
    print_aside(f"Token {token.id} for {token.user} ({token.scope}{until}). It is shown only once:")
    print_result({"token": created.text, **_token_data(token, "active")}, created.text)


@command.command("list")
@click.option("--user", "name", metavar="NAME", type=text, help="Only tokens of this user.")
@click.option("--include-revoked", "everything", is_flag=True, help="Include revoked and expired tokens.")
@in_workspace
def list_tokens(name: str | None, options: WorkspaceOptions, *, everything: bool) -> None:
    """List tokens with their ids and last characters.

    \b
    Examples:
      dittybag token list
      dittybag token list --user alice --include-revoked
    """
    tokens, users = options.run(lambda session: session.workspace.accounts.tokens(name))
    disabled = {user.name for user in users if user.disabled_at is not None}
    now = int(datetime.now().astimezone().timestamp() * 1_000_000)
    states = [(token, _state(token, now, disabled)) for token in tokens]
    found = [(token, state) for token, state in states if everything or state == "active"]
    print_list(
        {"tokens": [_token_data(token, state) for token, state in found]},
        ("id", "user", "scope", "token", "state", "expires", "used", "label"),
        [
            (
                str(token.id),
                token.user,
                token.scope,
                f"...{token.hint}",
                state,
                _day(token.expires_at),
                _day(token.used_at),
                token.label,
            )
            for token, state in found
        ],
        empty=(
            "No tokens found",
            "to create a token, run: dittybag token create --user NAME --scope write",
        ),
        right=(0,),
        shrinkable=(7,),
        styles=lambda row: {"fg": None if found[row][1] == "active" else GREY},
    )


@command.command("revoke")
@click.argument("ids", metavar="ID...", type=POSITIVE, nargs=-1, required=True)
@in_workspace
def revoke(ids: tuple[int, ...], options: WorkspaceOptions) -> None:
    """Revoke tokens. All servers reject them within 5 seconds.

    If one of the tokens does not exist, none is revoked.

    \b
    Example:
      dittybag token revoke 3
    """
    revoked = options.run(lambda session: session.workspace.accounts.revoke(ids, actor=session.caller.actor))
    print_result(
        {"revoked": [token.id for token in revoked]},
        *(f"Revoked token {token.id} of user '{token.user}'" for token in revoked),
    )


def _state(token: Token, now: int, disabled: set[str]) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.user in disabled:
        return "disabled"
    return "active" if token.is_valid(now) else "expired"


def _day(microseconds: int | None) -> str:
    if microseconds is None:
        return "never"
    return format_time(microseconds) if sys.stdout.isatty() else iso(microseconds)[:10]


def _token_data(token: Token, state: str) -> dict[str, Any]:
    return {**struct_data(token), "state": state}
