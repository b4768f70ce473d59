"""Fixtures of the storage contract: a store of every backend."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dittybag.domain.ports import Store
from tests.storage_contract.backends import BACKENDS, Backend
from tests.storage_contract.store_session import OpenStore, StoreSession, open_session

#: Modules that also run on PostgreSQL with trigrams; the results of all others do not depend on them.
_WITH_TRIGRAMS = (
    "test_text_search",
    "test_text_search_at_scale",
    "test_ranked_search",
    "test_prompt_storage",
    "test_log_replay",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    def is_redundant(item: pytest.Item) -> bool:
        callspec = getattr(item, "callspec", None)
        has_trigrams = callspec is not None and callspec.params.get("backend") == "postgres-trigrams"
        return (
            has_trigrams
            and item.path.parent == Path(__file__).parent
            and item.path.stem not in _WITH_TRIGRAMS
        )

    deselected = [item for item in items if is_redundant(item)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not is_redundant(item)]


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    name: str = request.param
    return BACKENDS[name](request)


@pytest.fixture
def with_stamps(backend: Backend) -> None:
    """Skip the test on backends without stamps."""
    if not backend.stamps:
        pytest.skip("stores of this backend have no stamps")


@pytest.fixture
async def open_store(backend: Backend) -> AsyncIterator[OpenStore]:
    """Return a function that opens the same store again, as another process would."""
    location = await backend.borrow()
    opened: list[Store] = []

    async def open_again() -> Store:
        opened.append(await backend.open(location))
        return opened[-1]

    yield open_again
    for store in opened:
        await store.close()
    await backend.give_back(location)


@pytest.fixture
async def store(open_store: OpenStore) -> Store:
    return await open_store()


@pytest.fixture
async def session(store: Store) -> StoreSession:
    """A session in the default project."""
    return await open_session(store)
