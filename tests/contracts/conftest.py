"""Servers for the tests of the contracts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.replay import Hosts, Serve, Server, Transport


@pytest.fixture
def transport() -> Transport:
    """How servers are spoken to. Modules whose tests are for all transports have a fixture of their own."""
    return "stdio"


@pytest.fixture
def serve(tmp_path: Path, transport: Transport) -> Iterator[Serve]:
    """Opens servers on one database, each until the test ends."""
    with ExitStack() as stack:

        def opened(profile: str = "satchel", *options: str, **more: Any) -> Server:
            server = Server(tmp_path, profile, *options, transport=transport, **more)
            return stack.enter_context(server)

        yield opened


@pytest.fixture(scope="module")
def _unwritten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Hosts]]:
    hosts = Hosts()
    yield tmp_path_factory.mktemp("unwritten"), hosts
    hosts.close()


@pytest.fixture
def serve_unwritten(_unwritten: tuple[Path, Hosts], transport: Transport) -> Iterator[Serve]:
    """Opens servers on a database that many tests share, because none of them writes to it."""
    directory, hosts = _unwritten
    with ExitStack() as stack:

        def opened(profile: str = "satchel", *options: str, **more: Any) -> Server:
            server = Server(directory, profile, *options, transport=transport, hosts=hosts, **more)
            return stack.enter_context(server)

        yield opened


@pytest.fixture
def server(serve: Serve) -> Server:
    """A server of the default profile."""
    return serve()
