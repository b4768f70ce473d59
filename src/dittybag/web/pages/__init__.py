"""The pages, one module for each noun."""

from __future__ import annotations

from typing import Final

from dittybag.web.pages import activity, connect, home, libraries, prompts, resources, tasks
from dittybag.web.requests import Route

ROUTES: Final[tuple[Route, ...]] = (
    *home.routes,
    *prompts.routes,
    *libraries.routes,
    *resources.routes,
    *tasks.routes,
    *activity.routes,
    *connect.routes,
)
