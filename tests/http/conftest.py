"""A running fixture server and a client for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.plain_http_client import PlainHttpClient
from tests.http.spawned_server import SpawnedServer


@pytest.fixture(scope="module")
def running() -> Iterator[SpawnedServer]:
    with SpawnedServer.fixture(origins=["https://pages.example.org"]) as running:
        yield running


@pytest.fixture
def client(running: SpawnedServer) -> Iterator[PlainHttpClient]:
    with PlainHttpClient(running.port) as client:
        yield client
