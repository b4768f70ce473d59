"""The environments must be there: their absence is an error, never a reason to skip."""

from __future__ import annotations

import pytest

from tests.interop.environments import ENVIRONMENTS


@pytest.fixture(scope="session", autouse=True)
def _environments() -> None:
    missing = [environment.title for environment in ENVIRONMENTS if not environment.is_made]
    if missing:
        pytest.fail(
            f"there is no environment for {', '.join(missing)}\n"
            "hint: make them with: python -m tests.interop.environments",
            pytrace=False,
        )
