"""Builds the distributions once in each process, or takes those that `make dist` has built."""

from __future__ import annotations

import os

import pytest

from tests.package.distributions import DIST, Distributions, build, find


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    if os.environ.get("INSTALLS"):
        return find(DIST)
    return build(tmp_path_factory.mktemp("dist"))
