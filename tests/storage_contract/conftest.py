"""A store of every backend for the tests of the storage contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from dittybag.domain.ports import Store
from tests.storage_contract.backends import BACKENDS, Backend
from tests.storage_contract.desk import Desk, OpenStore, desk_at

#: Where it makes a difference that PostgreSQL has trigrams; all other tests run without.
_WITH_TRIGRAMS = ("test_search", "test_search_in_bulk", "test_prompts", "test_replay")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def makes_no_difference(item: pytest.Item) -> bool:
        chosen = getattr(item, "callspec", None)
        is_with = chosen is not None and chosen.params.get("backend") == "postgres-trigrams"
        return is_with and item.path.parent == Path(__file__).parent and item.path.stem not in _WITH_TRIGRAMS

    left_out = [item for item in items if makes_no_difference(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not makes_no_difference(item)]


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    name: str = request.param
    with BACKENDS[name](tmp_path_factory.mktemp(name)) as backend:
        yield backend


@pytest.fixture
def with_stamps(backend: Backend) -> None:
    """Only where stores have stamps."""
    if not backend.stamps:
        pytest.skip("stores of this backend have no stamps")


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
