"""The pages, one module for each noun."""

from __future__ import annotations

from typing import Final

from satchel.web.pages import activity, connect, home, libraries, prompts, resources, tasks
from satchel.web.requests import Route

ROUTES: Final[tuple[Route, ...]] = (
    *home.routes,
    *prompts.routes,
    *libraries.routes,
    *resources.routes,
    *tasks.routes,
    *activity.routes,
    *connect.routes,
)
