"""A store of every backend for the tests of the storage contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from satchel.domain.ports import Store
from tests.storage_contract.backends import BACKENDS, Backend
from tests.storage_contract.desk import Desk, OpenStore, desk_at


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Backend:
    name: str = request.param
    return BACKENDS[name](tmp_path_factory.mktemp(name))


@pytest.fixture
async def open_store(backend: Backend) -> AsyncIterator[OpenStore]:
    """Opens one and the same store, each time as a further process would."""
    place = backend.new_place()
    opened: list[Store] = []

    async def open_it() -> Store:
        opened.append(await backend.open(place))
        return opened[-1]

    yield open_it
    for store in opened:
        await store.close()


@pytest.fixture
async def store(open_store: OpenStore) -> Store:
    return await open_store()


@pytest.fixture
async def desk(store: Store) -> Desk:
    """Somebody at work in the default project."""
    return await desk_at(store)
