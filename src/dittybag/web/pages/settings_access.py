"""The Access section of Settings: users and tokens."""

from __future__ import annotations

import time
from typing import Final

from dittybag.domain.accounts import SCOPES, Scope
from dittybag.domain.display import format_count
from dittybag.domain.errors import Conflict, DittybagError, Invalid, NotAllowed, NotFound
from dittybag.services.account_service import NewToken
from dittybag.web.browser_requests import WebRequest, WebResponse, redirect, status_of
from dittybag.web.pages.settings_sections import problem_text, render_section

#: Days until a new token expires, and their labels; 0 for never.
_EXPIRIES: Final = ((30, "in 30 days"), (90, "in 90 days"), (365, "in a year"), (0, "never"))
_DAY_MICROSECONDS: Final = 86_400_000_000


async def show_access(
    request: WebRequest, *, status: int = 200, problem: str = "", created: NewToken | None = None
) -> WebResponse:
    """Show users and tokens. `created`: the new token, which is shown only now."""
    accounts = await request.workspace.administration.accounts(request.caller)
    return render_section(
        request,
        "access",
        status=status,
        users=accounts.users,
        tokens=accounts.tokens,
        scopes=[(scope, scope) for scope in SCOPES],
        expiries=_EXPIRIES,
        now=time.time_ns() // 1000,
        problem=problem,
        created=created,
    )


async def add_user(request: WebRequest) -> WebResponse:
    name = request.form.get("name", "").strip()
    try:
        user = await request.workspace.administration.add_user(request.caller, name)
    except (Invalid, Conflict) as error:
        return await _show_problem(request, error)
    return _redirect(request, f"Added {user.name}. Create a token for them next")


async def disable_user(request: WebRequest) -> WebResponse:
    name = request.form.get("name", "")
    try:
        user, tokens = await request.workspace.administration.disable_user(request.caller, name)
    except NotAllowed as error:
        return await _show_problem(request, error)
    return _redirect(request, f"Disabled {user.name} and revoked {format_count(len(tokens), 'token')}")


async def enable_user(request: WebRequest) -> WebResponse:
    user = await request.workspace.administration.enable_user(request.caller, request.form.get("name", ""))
    return _redirect(request, f"Enabled {user.name}. Revoked tokens stay revoked")


async def create_token(request: WebRequest) -> WebResponse:
    """Create a token, and show it once in the response, which is not cached."""
    scope: Scope = next((scope for scope in SCOPES if scope == request.form.get("scope")), "read")
    days = request.number_in_form("days")
    expires_at = time.time_ns() // 1000 + days * _DAY_MICROSECONDS if 0 < days <= 3650 else None
    try:
        created = await request.workspace.administration.create_token(
            request.caller,
            request.form.get("user", ""),
            scope,
            label=request.form.get("label", "").strip(),
            expires_at=expires_at,
        )
    except (Invalid, Conflict, NotFound) as error:
        return await _show_problem(request, error)
    return await show_access(request, created=created)


async def revoke_token(request: WebRequest) -> WebResponse:
    token = await request.workspace.administration.revoke_token(request.caller, request.number_in_form("id"))
    return _redirect(request, f"Revoked the token of {token.user} that ends in {token.hint}")


async def _show_problem(request: WebRequest, error: DittybagError) -> WebResponse:
    return await show_access(request, status=status_of(error), problem=problem_text(error))


def _redirect(request: WebRequest, note: str) -> WebResponse:
    return redirect(request.link("/settings/access"), note)
