"""Servers for the tests of the contracts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.replay import Serve, Server


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Opens servers on one database, each until the test ends."""
    with ExitStack() as stack:

        def opened(profile: str = "satchel", *options: str, **more: Any) -> Server:
            return stack.enter_context(Server(tmp_path, profile, *options, **more))

        yield opened


@pytest.fixture
def server(serve: Serve) -> Server:
    """A server of the default profile."""
    return serve()
