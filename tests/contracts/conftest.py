"""Servers for the tests of the contracts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests import databases
from tests.contracts.replay import Hosts, Place, Serve, Server, Way, create_project
from tests.contracts.warm import WarmWorkspace


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that neither read nor write anything where each has a server of its own to start."""

    def is_superfluous(item: pytest.Item) -> bool:
        chosen = getattr(item, "callspec", None)
        way = None if chosen is None else chosen.params.get("way")
        return way == Way("stdio", "postgres") and "serve_unwritten" in getattr(item, "fixturenames", ())

    left_out = [item for item in items if is_superfluous(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_superfluous(item)]


@pytest.fixture
def way() -> Way:
    """How servers are spoken to, and where they keep things. Modules whose tests are for all ways have a
    fixture of their own."""
    return Way()


@pytest.fixture(scope="module")
def project() -> str | None:
    """A project that is there before there are servers. Modules that need one have a fixture of their own."""
    return None


@pytest.fixture(scope="session")
def postgres() -> Iterator[databases.Server]:
    with databases.running("carried") as server:
        yield server


@pytest.fixture(scope="module")
def warm(
    request: pytest.FixtureRequest, postgres: databases.Server, project: str | None
) -> Iterator[WarmWorkspace]:
    """A workspace in PostgreSQL for the tests of a module, whose servers stay."""
    schema = request.module.__name__.rpartition(".")[2]
    with closing(WarmWorkspace(postgres, schema, project)) as workspace:
        yield workspace


@pytest.fixture(scope="module")
def _at_first(tmp_path_factory: pytest.TempPathFactory, project: str | None) -> Path:
    """A directory with whatever has to be there before there are servers."""
    directory = tmp_path_factory.mktemp("first")
    if project is not None:
        create_project(directory, project)
    return directory


@pytest.fixture
def place(request: pytest.FixtureRequest, way: Way) -> Place:
    """Where a test may write what it likes."""
    if way.backend == "postgres":
        workspace: WarmWorkspace = request.getfixturevalue("warm")
        workspace.put_back()
        return workspace.url
    directory: Path = request.getfixturevalue("tmp_path")
    return shutil.copytree(request.getfixturevalue("_at_first"), directory, dirs_exist_ok=True)


def _opening(stack: ExitStack, place: Place, way: Way, hosts: Hosts | None) -> Serve:
    def opened(profile: str = "all", *options: str, **more: Any) -> Server:
        server = Server(place, profile, *options, transport=way.transport, hosts=hosts, **more)
        return stack.enter_context(server)

    return opened


@pytest.fixture
def serve(request: pytest.FixtureRequest, place: Place, way: Way) -> Iterator[Serve]:
    """Opens servers on one database, each until the test ends."""
    hosts: Hosts | None = request.getfixturevalue("warm").hosts if way.backend == "postgres" else None
    with ExitStack() as stack:
        yield _opening(stack, place, way, hosts)


@pytest.fixture(scope="module")
def _unwritten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Hosts]]:
    with closing(Hosts()) as hosts:
        yield tmp_path_factory.mktemp("unwritten"), hosts


@pytest.fixture
def serve_unwritten(request: pytest.FixtureRequest, way: Way) -> Iterator[Serve]:
    """Opens servers on a database that many tests share, because none of them writes to it."""
    place: Place
    if way.backend == "postgres":
        workspace: WarmWorkspace = request.getfixturevalue("warm")
        place, hosts = workspace.url, workspace.hosts
    else:
        place, hosts = request.getfixturevalue("_unwritten")
    with ExitStack() as stack:
        yield _opening(stack, place, way, hosts)


@pytest.fixture
def server(serve: Serve) -> Server:
    """A server of the default profile."""
    return serve()
