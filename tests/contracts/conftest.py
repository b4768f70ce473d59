"""Fixtures for the contract tests: servers on every transport and database."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests import pgbouncer_servers
from tests.contracts.contract_replay import (
    ServerUnderTest,
    ServerVariant,
    SharedServers,
    StartServer,
    WorkspaceLocation,
    create_project,
    create_workspace,
)
from tests.contracts.resettable_workspace import ResettableWorkspace
from tests.postgres_servers import PostgresServer

_schema_numbers = count(1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that use no stored data on the variant that starts a server process for every test."""

    def is_redundant(item: pytest.Item) -> bool:
        chosen = getattr(item, "callspec", None)
        variant = None if chosen is None else chosen.params.get("variant")
        return variant == ServerVariant("stdio", "postgres") and "serve_shared" in getattr(
            item, "fixturenames", ()
        )

    deselected = [item for item in items if is_redundant(item)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not is_redundant(item)]


@pytest.fixture
def variant() -> ServerVariant:
    """The transport and the database of servers. Modules that test all variants override this fixture."""
    return ServerVariant()


@pytest.fixture(scope="module")
def project() -> str | None:
    """A project to create before servers start. Modules that need one override this fixture."""
    return None


@pytest.fixture(scope="session")
def postgres(shared_postgres: PostgresServer) -> PostgresServer:
    return shared_postgres


@pytest.fixture(scope="module")
def postgres_workspace(
    request: pytest.FixtureRequest, postgres: PostgresServer, project: str | None
) -> Iterator[ResettableWorkspace]:
    """A workspace in PostgreSQL for the tests of a module; its servers keep running between tests."""
    schema = f"{request.module.__name__.rpartition('.')[2]}_{next(_schema_numbers)}"
    pooler = request.getfixturevalue("shared_pgbouncer") if pgbouncer_servers.IS_WANTED else None
    with closing(ResettableWorkspace(postgres, schema, project, pooler)) as workspace:
        yield workspace


@pytest.fixture(scope="module")
def _initial_folder(tmp_path_factory: pytest.TempPathFactory, project: str | None) -> Path:
    """A directory with the initial state of a workspace, which is faster to copy than to create."""
    directory = tmp_path_factory.mktemp("initial")
    if project is None:
        create_workspace(directory)
    else:
        create_project(directory, project)
    return directory


@pytest.fixture
def location(request: pytest.FixtureRequest, variant: ServerVariant) -> WorkspaceLocation:
    """The location of a workspace of the test's own."""
    if variant.backend == "postgres":
        workspace: ResettableWorkspace = request.getfixturevalue("postgres_workspace")
        workspace.reset()
        return workspace.url
    directory: Path = request.getfixturevalue("tmp_path")
    return shutil.copytree(request.getfixturevalue("_initial_folder"), directory, dirs_exist_ok=True)


def _server_starter(
    stack: ExitStack, location: WorkspaceLocation, variant: ServerVariant, hosts: SharedServers | None
) -> StartServer:
    def opened(profile: str = "all", *options: str, **more: Any) -> ServerUnderTest:
        server = ServerUnderTest(
            location, profile, *options, transport=variant.transport, hosts=hosts, **more
        )
        return stack.enter_context(server)

    return opened


@pytest.fixture
def serve(
    request: pytest.FixtureRequest, location: WorkspaceLocation, variant: ServerVariant
) -> Iterator[StartServer]:
    """Start servers on one database; each runs until the test ends."""
    hosts: SharedServers | None = (
        request.getfixturevalue("postgres_workspace").hosts if variant.backend == "postgres" else None
    )
    with ExitStack() as stack:
        yield _server_starter(stack, location, variant, hosts)


@pytest.fixture(scope="module")
def _shared_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, SharedServers]]:
    with closing(SharedServers()) as hosts:
        yield tmp_path_factory.mktemp("shared"), hosts


@pytest.fixture
def serve_shared(request: pytest.FixtureRequest, variant: ServerVariant) -> Iterator[StartServer]:
    """Start servers on a database that many tests share, because none of them writes to it."""
    location: WorkspaceLocation
    if variant.backend == "postgres":
        workspace: ResettableWorkspace = request.getfixturevalue("postgres_workspace")
        location, hosts = workspace.url, workspace.hosts
    else:
        location, hosts = request.getfixturevalue("_shared_servers")
    with ExitStack() as stack:
        yield _server_starter(stack, location, variant, hosts)


@pytest.fixture
def server(serve: StartServer) -> ServerUnderTest:
    """A server of the default profile."""
    return serve()
