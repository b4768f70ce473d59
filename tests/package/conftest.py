"""Builds the distributions once in each process."""

from __future__ import annotations

import pytest

from tests.package.distributions import Distributions, build


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return build(tmp_path_factory.mktemp("dist"))
