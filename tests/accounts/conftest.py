"""Worlds for the tests of accounts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.accounts.world import World


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One for all tests that leave users, tokens and members as they are."""
    with World(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture
def own_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One for a test that does not."""
    with World(tmp_path_factory.mktemp("world")) as made:
        yield made
