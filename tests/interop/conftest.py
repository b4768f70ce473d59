"""Checks that the client environments are installed: a missing environment is an error, never a skip."""

from __future__ import annotations

import pytest

from tests.interop.environments import ENVIRONMENTS


@pytest.fixture(scope="session", autouse=True)
def _environments() -> None:
    missing = [environment.title for environment in ENVIRONMENTS if not environment.is_installed]
    if missing:
        pytest.fail(
            f"not installed: {', '.join(missing)}\nhint: run: python -m tests.interop.environments",
            pytrace=False,
        )
