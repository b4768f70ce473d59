"""The routes of all pages."""

from __future__ import annotations

from typing import Final

from dittybag.web.browser_requests import Route
from dittybag.web.pages import (
    activity_pages,
    connect_page,
    home_page,
    library_pages,
    prompt_pages,
    purge_page,
    resource_pages,
    task_pages,
)

ROUTES: Final[tuple[Route, ...]] = (
    *home_page.routes,
    *prompt_pages.routes,
    *library_pages.routes,
    *resource_pages.routes,
    *task_pages.routes,
    *activity_pages.routes,
    *purge_page.routes,
    *connect_page.routes,
)
