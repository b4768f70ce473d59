"""Paged lists and completions."""

from __future__ import annotations

from typing import Any

import pytest

from dittybag.protocol.eras.versions import V2025_11_25, VERSIONS
from dittybag.protocol.features import Page, PromptDefinition
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server
from dittybag.protocol.types import (
    PromptInfo,
)
from tests.protocol.engine_servers import full_server
from tests.protocol.memory_client import MemoryClient

# Pages


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("method", "member", "count"), [("tools/list", "tools", 7), ("resources/list", "resources", 2)]
)
async def test_pages_have_no_gaps_and_no_overlaps(version: str, method: str, member: str, count: int) -> None:
    async with MemoryClient(full_server(), version) as client:
        whole = (await client.request(method))[member]
    async with MemoryClient(full_server(page_size=2), version) as client:
        seen: list[Any] = []
        params: dict[str, Any] = {}
        while True:
            page = await client.request(method, params)
            assert 1 <= len(page[member]) <= 2
            seen += page[member]
            if "nextCursor" not in page:
                break
            params = {"cursor": page["nextCursor"]}
    assert seen == whole
    assert len(seen) == count


@pytest.mark.parametrize(
    "cursor", ["", "x", "bm90IGpzb24", 7, [], "WyJ0b29scy9saXN0Iiw5OTldCg", "=" * 5000, "é"]
)
async def test_an_invalid_cursor_is_refused(cursor: Any) -> None:
    async with MemoryClient(full_server(page_size=2)) as client:
        assert (await client.error("tools/list", {"cursor": cursor}))["code"] == -32602


async def test_a_cursor_of_one_list_is_refused_for_another() -> None:
    async with MemoryClient(full_server(page_size=1)) as client:
        cursor = (await client.request("tools/list"))["nextCursor"]
        assert (await client.error("resources/list", {"cursor": cursor}))["code"] == -32602


async def test_a_custom_source_is_queried_by_page_and_each_page_is_encoded_once_per_stamp() -> None:
    queried: list[Any] = []

    class Letters:
        """Prompts named after letters, two per page. The length of 0 must not make the source look absent."""

        mark: str | None = "first"

        def __len__(self) -> int:
            return 0

        def stamp(self, ctx: Context) -> str | None:
            return self.mark

        async def list(self, position: str | int | None, ctx: Context) -> Page[PromptInfo]:
            queried.append(position)
            letters = "abcde"
            start = 0 if position is None else letters.index(str(position))
            page = letters[start : start + 2]
            following = letters[start + 2 : start + 3] or None
            return Page(tuple(PromptInfo(name=letter, arguments=()) for letter in page), following)

        def get(self, name: str, arguments: Any, ctx: Context) -> str:
            return f"The letter {name}"

        def complete(self, request: Any, ctx: Context) -> tuple[str, ...]:
            return ()

    source = Letters()
    server = Server("letters", "1", prompts=source)
    async with MemoryClient(server) as client:
        names: list[str] = []
        params: dict[str, Any] = {}
        while True:
            page = await client.request("prompts/list", params)
            names += [prompt["name"] for prompt in page["prompts"]]
            if "nextCursor" not in page:
                break
            params = {"cursor": page["nextCursor"]}
        assert names == list("abcde")
        assert queried == [None, "c", "e"]
        await client.request("prompts/list")
        assert len(queried) == 3
        source.mark = "second"
        await client.request("prompts/list")
        source.mark = None
        await client.request("prompts/list")
        await client.request("prompts/list")
        assert queried[3:] == [None, None, None]
        got = await client.request("prompts/get", {"name": "a"})
        assert got["messages"][0]["content"]["text"] == "The letter a"
        with pytest.raises(TypeError):
            server.add(PromptDefinition(name="x", run=lambda arguments, ctx: ""))


# Completion


async def test_completions_are_filtered_and_limited_and_can_use_the_other_arguments() -> None:
    async with MemoryClient(full_server(), V2025_11_25) as client:
        ref = {"type": "ref/prompt", "name": "greet"}
        languages = await client.request(
            "completion/complete", {"ref": ref, "argument": {"name": "language", "value": "e"}}
        )
        people = await client.request(
            "completion/complete",
            {
                "ref": ref,
                "argument": {"name": "who", "value": "A"},
                "context": {"arguments": {"language": "French"}},
            },
        )
        years = await client.request(
            "completion/complete",
            {
                "ref": {"type": "ref/resource", "uri": "memo://{year}/{name}"},
                "argument": {"name": "year", "value": ""},
            },
        )
    assert languages["completion"] == {"values": ["English", "Esperanto"], "total": 2, "hasMore": False}
    assert len(people["completion"]["values"]) == 100
    assert people["completion"]["values"][0] == "A0 (French)"
    assert (people["completion"]["total"], people["completion"]["hasMore"]) == (150, True)
    assert years["completion"]["values"] == ["2024", "2025"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"ref": {"type": "ref/prompt", "name": "greet"}},
        {"ref": {"type": "ref/prompt", "name": "nope"}, "argument": {"name": "who", "value": ""}},
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "nope", "value": ""}},
        {"ref": {"type": "ref/other"}, "argument": {"name": "who", "value": ""}},
        {"ref": {"type": "ref/resource", "uri": "memo://no"}, "argument": {"name": "who", "value": ""}},
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": 7}},
    ],
)
async def test_a_completion_request_without_a_valid_target_is_invalid_params(params: dict[str, Any]) -> None:
    async with MemoryClient(full_server()) as client:
        assert (await client.error("completion/complete", params))["code"] == -32602
