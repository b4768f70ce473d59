"""How pages look in one browser: its theme and the density of its lists, kept in cookies."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dittybag.domain.errors import Problem, require
from dittybag.http.asgi_messages import Header, Headers
from dittybag.web.browser_requests import WebRequest, WebResponse, cookie, cookies, redirect

#: The values of each setting; the first is the default and needs no cookie.
CHOICES: Final = {"theme": ("auto", "light", "dark"), "density": ("dense", "comfortable")}
_COOKIE_SECONDS: Final = 365 * 24 * 3600


class Appearance(Struct, frozen=True):
    """The settings of a browser, as attributes of the page's root element."""

    theme: str
    density: str

    @property
    def color_scheme(self) -> str:
        """The value of the CSS property that selects the colours."""
        return "light dark" if self.theme == "auto" else self.theme


def read_appearance(headers: Headers) -> Appearance:
    """Return the settings in the cookies of a request; unknown values count as the default."""
    found = cookies(headers)
    chosen = {
        name: found[name] if found.get(name) in values else values[0] for name, values in CHOICES.items()
    }
    return Appearance(**chosen)


def save_appearance(request: WebRequest) -> WebResponse:
    """Store the settings of the form, and show the page again that sent it; htmx applies them itself."""
    given = {name: request.form[name] for name in CHOICES if name in request.form}
    require(
        Problem(name, f"{name} must be one of {', '.join(CHOICES[name])}")
        for name, value in given.items()
        if value not in CHOICES[name]
    )
    is_secure = request.origin.startswith("https:")
    stored: list[Header] = [
        cookie(
            name,
            value,
            seconds=0 if value == CHOICES[name][0] else _COOKIE_SECONDS,
            secure=is_secure,
        )
        for name, value in given.items()
    ]
    response = WebResponse(204) if request.is_fragment else redirect(_previous_page(request))
    return WebResponse(response.status, headers=(*response.headers, *stored))


def _previous_page(request: WebRequest) -> str:
    """Return the path of the page that sent a form, or the first page if it is not known."""
    origin, page = request.origin, request.headers.get(b"referer") or ""
    path = page.removeprefix(origin)
    return path if page.startswith(f"{origin}/") and not path.startswith("//") else "/"
