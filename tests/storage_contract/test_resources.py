"""Resources in a store: their bytes, lists, pages and templates."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.errors import Invalid, NameTaken, ResourceNotFound, UriTaken
from dittybag.domain.resources import CONTENT_BYTES, Resource
from tests.storage_contract.desk import Desk, OpenStore, desk_at
from tests.storage_contract.ledger import check_books

EVERY_BYTE = bytes(range(256))


async def stored(desk: Desk, resource: Resource) -> list[Resource | None]:
    """A resource as each way to look it up finds it."""
    return [
        await desk.read(lambda transaction: transaction.resources.by_name(desk.project, resource.name)),
        await desk.read(lambda transaction: transaction.resources.by_uri(desk.project, resource.uri)),
        (await desk.workspace.resources.read(desk.caller, resource.uri))[0],
        *[
            one
            for one in await desk.read(lambda transaction: transaction.resources.in_project(desk.project))
            if one.number == resource.number
        ],
    ]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("Words", {}),
        ("", {"title": "Empty", "description": "Nothing in it"}),
        (
            "\x01\t\r\n\x7f\u2028\ufeff\uffff 👩‍👩‍👧 שלום e\u0301",
            {"uri": "note://ä/%20?q=1#ü", "title": 'İ "%_'},
        ),
        ("x" * CONTENT_BYTES, {"mime_type": "application/json"}),
        (b"", {}),
        (EVERY_BYTE, {"mime_type": "image/png"}),
        (EVERY_BYTE * (CONTENT_BYTES // 256), {}),
        ("{name}", {"uri": "file:///{name}/{other}.md"}),
    ],
)
async def test_a_resource_comes_back_byte_for_byte(
    desk: Desk, content: str | bytes, parts: dict[str, Any]
) -> None:
    resource = await desk.resource("r", content, **parts)
    data = content if isinstance(content, bytes) else content.encode()
    for field, value in parts.items():
        assert getattr(resource, field) == value
    assert (resource.size, resource.sha256) == (len(data), sha256(data).hexdigest())
    assert await stored(desk, resource) == [resource] * 4
    assert await desk.workspace.resources.read(desk.caller, resource.uri) == (resource, data)


async def test_an_updated_resource_comes_back_as_it_was_updated(desk: Desk) -> None:
    first = await desk.resource("r", "Old")
    changed = await desk.change_resource("r", content="Neu: ä", title="T", description="D")
    assert changed == replace(
        first,
        title="T",
        description="D",
        sha256=sha256("Neu: ä".encode()).hexdigest(),
        size=7,
        updated_at=changed.updated_at,
        version=2,
    )
    assert await stored(desk, changed) == [changed] * 4
    cleared = await desk.change_resource("r", title="", description="")
    assert (cleared.title, cleared.description, cleared.sha256) == (None, None, changed.sha256)
    assert await desk.content(cleared) == "Neu: ä".encode()


async def test_a_resource_may_turn_from_text_to_bytes_but_only_text_turns_into_text(desk: Desk) -> None:
    await desk.resource("r", "Words")
    await desk.change_resource("r", mime_type="image/png")
    await desk.change_resource("r", mime_type="text/markdown")
    await desk.change_resource("r", mime_type="image/png", content="/w==")
    with pytest.raises(Invalid):
        await desk.change_resource("r", mime_type="text/plain")
    resource, data = await desk.workspace.resources.read(desk.caller, "file:///r")
    assert (resource.mime_type, data) == ("image/png", b"\xff")


@pytest.mark.parametrize(
    ("stored", "content", "problem"),
    [
        ("Words", "a\0b", "Content must not contain NUL characters"),
        (
            b"\x89",
            "no*base64",
            "Content must be valid base64, because application/octet-stream is a binary type",
        ),
    ],
)
async def test_an_update_names_all_that_is_wrong_with_a_content_of_the_stored_type(
    desk: Desk, stored: str | bytes, content: str, problem: str
) -> None:
    await desk.resource("r", stored)
    with pytest.raises(Invalid) as refused:
        await desk.change_resource("r", content=content, description="x" * 4001)
    assert [item.message for item in refused.value.problems] == [
        problem,
        "Description must be at most 4000 characters, but has 4001",
    ]
    await check_books(desk.store)


async def test_resources_with_the_same_content_do_not_share_a_fate(desk: Desk) -> None:
    await desk.resource("a", EVERY_BYTE)
    kept = await desk.resource("b", EVERY_BYTE)
    await desk.delete_resource("a")
    assert await desk.content(kept) == EVERY_BYTE
    changed = await desk.change_resource("b", content="AAAA")
    again = await desk.resource("c", EVERY_BYTE)
    assert (await desk.content(changed), await desk.content(again)) == (b"\0\0\0", EVERY_BYTE)


async def test_names_and_uris_are_unique_in_a_project(desk: Desk) -> None:
    await desk.resource("one", uri="file:///1")
    with pytest.raises(NameTaken):
        await desk.resource("one", uri="file:///2")
    with pytest.raises(UriTaken):
        await desk.resource("two", uri="file:///1")
    await desk.resource("ONE", uri="FILE:///1")
    await desk.resource("t", uri="file:///{x}")
    elsewhere = await desk_at(desk.store, "elsewhere")
    await elsewhere.resource("one", uri="file:///1")
    await check_books(desk.store)


@pytest.mark.parametrize("same", ["name", "uri"])
async def test_of_two_processes_that_want_one_name_or_uri_one_gets_it(
    open_store: OpenStore, same: str
) -> None:
    desks = [await desk_at(await open_store()) for _ in range(2)]
    for number in range(20):
        parts = [{"name": f"n{number}-{who}", "uri": f"x:{number}-{who}"} for who in range(2)]
        for part in parts:
            part[same] = "same" + str(number) if same == "name" else f"x:same{number}"
        outcomes = await asyncio.gather(
            *(desk.resource(**part) for desk, part in zip(desks, parts, strict=True)), return_exceptions=True
        )
        expected = {"name": "NameTaken", "uri": "UriTaken"}[same]
        assert {type(each).__name__ for each in outcomes} == {expected, "Resource"}
    await check_books(desks[0].store)


async def test_a_deleted_resource_is_found_by_nobody(desk: Desk) -> None:
    await desk.resource("r")
    await desk.resource("t", uri="file:///{x}")
    await desk.delete_resource("r")
    await desk.delete_resource("t")
    with pytest.raises(ResourceNotFound):
        await desk.workspace.resources.read(desk.caller, "file:///r")
    with pytest.raises(ResourceNotFound):
        await desk.delete_resource("r")
    for templates in (True, False):
        assert await desk.workspace.resources.listing(desk.caller, 0, 10, templates=templates) == []
    assert await desk.workspace.resources.templates(desk.caller) == []
    assert await desk.workspace.resources.uris(desk.caller, "", 10) == []
    assert await desk.read(lambda transaction: transaction.resources.in_project(desk.project)) == []


async def test_a_resource_of_another_project_looks_like_a_missing_one(desk: Desk) -> None:
    elsewhere = await desk_at(desk.store, "elsewhere")
    await elsewhere.resource("r", "needle")
    await elsewhere.resource("t", uri="file:///{x}")
    with pytest.raises(ResourceNotFound):
        await desk.workspace.resources.read(desk.caller, "file:///r")
    with pytest.raises(ResourceNotFound):
        await desk.change_resource("r", content="Mine")
    for templates in (True, False):
        assert await desk.workspace.resources.listing(desk.caller, 0, 10, templates=templates) == []
    assert await desk.workspace.resources.templates(desk.caller) == []
    assert await desk.workspace.resources.uris(desk.caller, "", 10) == []
    hits, totals = await desk.workspace.search.all_kinds(desk.caller, "needle", ["resource"], 10)
    assert (hits, totals) == ([], {"resource": 0})


async def test_listings_of_resources_and_of_templates_are_in_the_order_of_creation(desk: Desk) -> None:
    for number in range(12):
        await desk.resource(f"r{number}", uri=f"x:{{n}}/{number}" if number % 3 == 0 else f"x:{11 - number}")
    await desk.change_resource("r1", content="Newer")
    await desk.delete_resource("r2")
    await desk.delete_resource("r3")
    for templates, expected in (
        (True, ["r0", "r6", "r9"]),
        (False, ["r1", "r4", "r5", "r7", "r8", "r10", "r11"]),
    ):
        whole = await desk.workspace.resources.listing(desk.caller, 0, 100, templates=templates)
        assert [item.name for item in whole] == expected
        for limit in (1, 2, 3):
            paged: list[Resource] = []
            while page := await desk.workspace.resources.listing(
                desk.caller, paged[-1].number if paged else 0, limit, templates=templates
            ):
                assert len(page) <= limit
                paged += page
            assert paged == whole
    assert [item.name for item in await desk.workspace.resources.templates(desk.caller)] == ["r0", "r6", "r9"]


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        ("", ["file:///a%20b", "file:///a_b", "file:///ab", "note://x"]),
        ("file:///a", ["file:///a%20b", "file:///a_b", "file:///ab"]),
        ("file:///a%", ["file:///a%20b"]),
        ("file:///a_", ["file:///a_b"]),
        ("ile", []),
        ("\\", []),
    ],
)
async def test_uris_are_completed_but_templates_are_not(desk: Desk, prefix: str, found: list[str]) -> None:
    for name, uri in enumerate(("note://x", "file:///ab", "file:///a_b", "file:///a%20b", "file:///a{n}")):
        await desk.resource(str(name), uri=uri)
    assert await desk.workspace.resources.uris(desk.caller, prefix, 100) == found
    assert await desk.workspace.resources.uris(desk.caller, prefix, 1) == found[:1]


async def test_numbers_and_ids_of_deleted_resources_never_come_back(open_store: OpenStore) -> None:
    desk = await desk_at(await open_store())
    seen: list[Resource] = []
    for _ in range(2):
        for _ in range(5):
            seen.append(await desk.resource("r"))
            await desk.delete_resource("r")
        await desk.store.close()
        desk = await desk_at(await open_store())
    numbers = [resource.number for resource in seen]
    assert numbers == sorted(set(numbers))
    assert len({resource.id for resource in seen}) == len(seen)
