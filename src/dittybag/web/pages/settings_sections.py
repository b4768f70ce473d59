"""The sections of the Settings page, and who sees them."""

from __future__ import annotations

from typing import Any, Final

from dittybag.domain.errors import DittybagError, Invalid, NotAllowed
from dittybag.services.administration_service import can_administer
from dittybag.web.browser_requests import WebRequest, WebResponse
from dittybag.web.template_rendering import render_page

#: The key, title and path of each section, and whether only admins see it.
_SECTIONS: Final = (
    ("projects", "Projects", "/settings", False),
    ("access", "Access", "/settings/access", False),
    ("data", "Data", "/settings/data", True),
)


def may_administer(request: WebRequest) -> bool:
    """Whether the session may administer this server: the owner of the machine, or the admin scope."""
    return can_administer(request.caller)


def require_admin(request: WebRequest) -> None:
    """Raise `NotAllowed` unless the session may administer this server."""
    if not may_administer(request):
        raise NotAllowed("Only the owner of this machine and tokens with the admin scope may do this")


def problem_text(error: DittybagError) -> str:
    """Return what is wrong, for the top of a section."""
    if isinstance(error, Invalid):
        return "; ".join(problem.message for problem in error.problems)
    return str(error)


def render_section(request: WebRequest, key: str, *, status: int = 200, **values: Any) -> WebResponse:
    """Render a section with the list of those that the session may see."""
    is_admin = may_administer(request)
    sections = [
        (name, title, request.link(path)) for name, title, path, admin in _SECTIONS if is_admin or not admin
    ]
    return render_page(
        request,
        f"settings/{key}.html",
        status=status,
        settings_sections=sections,
        settings_section=key,
        is_owner=request.session.name is None,
        can_administer=is_admin and not request.context.read_only,
        **values,
    )
