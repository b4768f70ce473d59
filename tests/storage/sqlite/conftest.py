"""A workspace in an SQLite file, and a caller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite.sqlite_store import SqliteStore


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    workspace = Workspace(SqliteStore(str(tmp_path / "store.db")))
    yield workspace
    await workspace.store.close()


@pytest.fixture
async def caller(workspace: Workspace) -> Caller:
    return Caller((await workspace.projects.find("default")).id, "tester")
