"""Fixtures of the tests of the web UI."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.web_server_process import WebServerProcess
from tests.web.browser_client import BrowserClient


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServerProcess]:
    """A server with an empty workspace."""
    with WebServerProcess(tmp_path_factory.mktemp("home")) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: WebServerProcess) -> BrowserClient:
    """A browser that is signed in to the server of the module."""
    return BrowserClient.sign_in(server)
