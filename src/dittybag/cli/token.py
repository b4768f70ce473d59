"""`dittybag token`: manage the access tokens of users."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, Final

import click
from msgspec import Struct

from dittybag.cli.output import clip_line, json_option, print_json, print_table
from dittybag.cli.read_input import text
from dittybag.cli.strict_options import StrictGroup
from dittybag.cli.workspace_options import WorkspaceOptions, in_workspace
from dittybag.domain.accounts import SCOPES, Scope, Token
from dittybag.domain.times import iso
from dittybag.services.workspace import WorkspaceSession

_SPAN: Final = re.compile(r"([1-9]\d{0,4})\s*([hdwy])", re.ASCII)
_UNITS: Final = {
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "y": timedelta(days=365),
}


class ExpiryTime(click.ParamType[int, str]):
    """The value of --expires, as microseconds since 1970."""

    name = "when"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(parse_expiry(value, datetime.now().astimezone()).timestamp() * 1_000_000)
        except (ValueError, OverflowError):
            problem = f"'{clip_line(value)}' is not a valid time in the future"
            self.fail(f"{problem}; use 12h, 30d, 8w, 1y, 2027-01-01 or '2027-01-01 12:00'", param, ctx)


def parse_expiry(words: str, now: datetime) -> datetime:
    """Parse a time after `now`; without a time zone, it is in that of `now`. Raises `ValueError`."""
    if (found := _SPAN.fullmatch(words.strip().lower())) is not None:
        return now + int(found[1]) * _UNITS[found[2]]
    given = datetime.fromisoformat(words.strip())
    given = given if given.tzinfo is not None else given.replace(tzinfo=now.tzinfo)
    if given <= now:
        raise ValueError
    return given


class _ListedToken(Struct, frozen=True):
    """A token and its state: active, expired, revoked or disabled."""

    token: Token
    state: str


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
    type=ExpiryTime(),
    help="Expiry time, such as 30d or 2027-01-01 (default: never).",
)
@click.option("--label", metavar="TEXT", type=text, default="", help="Description of the token.")
@in_workspace
@json_option
def create(
    name: str, scope: Scope, expires: int | None, label: str, options: WorkspaceOptions, *, as_json: bool
) -> None:
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
    if as_json:
        print_json({"token": created.text, **_token_data(_ListedToken(created.token, "active"))})
        return
    token = created.token
    until = "" if token.expires_at is None else f", until {iso(token.expires_at)}"
    click.echo(f"Token {token.id} for {token.user} ({token.scope}{until}). It is shown only once:", err=True)
    click.echo(created.text)


@command.command("list")
@click.option("--user", "name", metavar="NAME", type=text, help="Only tokens of this user.")
@click.option("--all", "everything", is_flag=True, help="Include revoked and expired tokens.")
@in_workspace
@json_option
def list_tokens(name: str | None, options: WorkspaceOptions, *, everything: bool, as_json: bool) -> None:
    """List tokens with their ids and last characters.

    \b
    Examples:
      dittybag token list
      dittybag token list --user alice --all
    """

    async def work(session: WorkspaceSession) -> list[_ListedToken]:
        tokens, users = await session.workspace.accounts.tokens(name)
        disabled = {user.name for user in users if user.disabled_at is not None}
        now = int(datetime.now().astimezone().timestamp() * 1_000_000)
        return [_ListedToken(token, _state(token, now, disabled)) for token in tokens]

    found = [item for item in options.run(work) if everything or item.state == "active"]
    if as_json:
        print_json({"tokens": [_token_data(item) for item in found]})
        return
    if not found:
        click.echo("No tokens found", err=True)
        click.echo("hint: to create a token, run: dittybag token create --user NAME --scope write", err=True)
        return
    rows = [
        (
            str(item.token.id),
            item.token.user,
            item.token.scope,
            f"...{item.token.hint}",
            item.state,
            _day(item.token.expires_at),
            _day(item.token.used_at),
            item.token.label,
        )
        for item in found
    ]
    print_table(
        ("id", "user", "scope", "token", "state", "expires", "used", "label"),
        rows,
        right=(0,),
        shrinkable=(7,),
        styles=lambda row: {"dim": found[row].state != "active"},
    )


@command.command("revoke")
@click.argument("ids", metavar="ID...", type=click.IntRange(1), nargs=-1, required=True)
@in_workspace
@json_option
def revoke(ids: tuple[int, ...], options: WorkspaceOptions, *, as_json: bool) -> None:
    """Revoke tokens. All servers reject them within 5 seconds.

    If one of the tokens does not exist, none is revoked.

    \b
    Example:
      dittybag token revoke 3
    """
    revoked = options.run(lambda session: session.workspace.accounts.revoke(ids, actor=session.caller.actor))
    if as_json:
        print_json({"revoked": [token.id for token in revoked]})
        return
    for token in revoked:
        click.echo(f"Revoked token {token.id} of user '{token.user}'")


def _state(token: Token, now: int, disabled: set[str]) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if token.user in disabled:
        return "disabled"
    return "active" if token.is_valid(now) else "expired"


def _day(microseconds: int | None) -> str:
    return "never" if microseconds is None else iso(microseconds)[:10]


def _token_data(item: _ListedToken) -> dict[str, Any]:
    token = item.token
    times = ("created_at", "expires_at", "revoked_at", "used_at")
    moments = {name: None if (at := getattr(token, name)) is None else iso(at) for name in times}
    return {
        "id": token.id,
        "user": token.user,
        "scope": token.scope,
        "label": token.label,
        "hint": token.hint,
        "state": item.state,
        **moments,
    }
