"""A running fixture and a client of it, for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.protocol.transports.http.client import Client
from tests.protocol.transports.http.runner import Running


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with Running.fixture(origins=["https://pages.example.org"]) as running:
        yield running


@pytest.fixture
def client(running: Running) -> Iterator[Client]:
    with Client(running.port) as client:
        yield client
