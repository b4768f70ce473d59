"""Lists of stored entities are encoded once, paged, and in the order of creation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dittybag.contracts.profiles import PROFILES, build_server
from dittybag.contracts.tool_specs import ServerScope
from dittybag.library.library_folders import Directories
from dittybag.library.library_service import LibraryService
from dittybag.library.render.template_renderer import TemplateRenderer
from dittybag.services.caller import Caller
from dittybag.services.template_service import TemplateService
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.protocol.memory_client import MemoryClient


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    opened = Workspace(SqliteStore(str(tmp_path / "lists.db")))
    yield opened
    await opened.store.close()


CALLER = Caller(1, "test")


class ListClient:
    def __init__(self, workspace: Workspace) -> None:
        renderer = TemplateRenderer()
        libraries = LibraryService(Directories("nowhere"), renderer)
        scope = ServerScope(workspace, TemplateService(renderer, libraries), libraries, 1)
        libraries.start()
        self.server = build_server(PROFILES["all"], scope)
        self._client = MemoryClient(self.server)

    async def ask(self, method: str, **params: Any) -> Any:
        self._client.send(
            msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        )
        return (await self._client.next())["result"]


@pytest.mark.parametrize(
    "method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
)
async def test_an_unchanged_list_is_encoded_once(workspace: Workspace, method: str) -> None:
    await workspace.prompts.create(CALLER, name="p", content="x")
    await workspace.resources.create(CALLER, name="r", uri="file:///r", content="x")
    client = ListClient(workspace)
    first = await client.ask(method)
    (encoded,) = client.server.encoded_lists.values()
    # Changes of tasks do not affect this list.
    await workspace.tasks.create(CALLER, title="x")
    assert await client.ask(method) == first
    (same,) = client.server.encoded_lists.values()
    assert same is encoded


async def test_a_changed_list_is_encoded_again(workspace: Workspace) -> None:
    client = ListClient(workspace)
    assert (await client.ask("prompts/list"))["prompts"] == []
    await workspace.prompts.create(CALLER, name="p", content="x")
    assert len((await client.ask("prompts/list"))["prompts"]) == 1


async def test_the_pages_contain_every_prompt_in_the_order_of_creation(workspace: Workspace) -> None:
    names = [f"p{number}" for number in range(1500)]
    for name in names:
        await workspace.prompts.create(CALLER, name=name, content="x")
    client = ListClient(workspace)
    first = await client.ask("prompts/list")
    assert len(first["prompts"]) == 1000
    second = await client.ask("prompts/list", cursor=first["nextCursor"])
    assert "nextCursor" not in second
    assert [prompt["name"] for prompt in first["prompts"] + second["prompts"]] == names


async def test_long_descriptions_make_short_pages(workspace: Workspace) -> None:
    for number in range(600):
        await workspace.resources.create(
            CALLER, name=f"r{number}", uri=f"file:///{number}", content="", description="\x01" * 4000
        )
    client = ListClient(workspace)
    seen, page = [], await client.ask("resources/list")
    while True:
        seen += [resource["name"] for resource in page["resources"]]
        if "nextCursor" not in page:
            break
        page = await client.ask("resources/list", cursor=page["nextCursor"])
    assert seen == [f"r{number}" for number in range(600)]
