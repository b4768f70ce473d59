"""Storage of resources: content, lookup, lists and templates."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.errors import Invalid, NameTaken, ResourceNotFound, UriTaken
from dittybag.domain.resources import CONTENT_BYTES, Resource
from dittybag.services.search_service import RankedPage, RankedQuery
from tests.storage_contract.log_consistency import check_log
from tests.storage_contract.store_session import OpenStore, StoreSession, open_session

EVERY_BYTE = bytes(range(256))


async def stored(session: StoreSession, resource: Resource) -> list[Resource | None]:
    """Return a resource as each lookup method finds it."""
    return [
        await session.read(lambda transaction: transaction.resources.by_name(session.project, resource.name)),
        await session.read(lambda transaction: transaction.resources.by_uri(session.project, resource.uri)),
        (await session.workspace.resources.read(session.caller, resource.uri))[0],
        *[
            one
            for one in await session.read(lambda transaction: transaction.resources.listing(session.project))
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
async def test_a_resource_is_read_byte_for_byte(
    session: StoreSession, content: str | bytes, parts: dict[str, Any]
) -> None:
    resource = await session.resource("r", content, **parts)
    data = content if isinstance(content, bytes) else content.encode()
    for field, value in parts.items():
        assert getattr(resource, field) == value
    assert (resource.size, resource.sha256) == (len(data), sha256(data).hexdigest())
    assert await stored(session, resource) == [resource] * 4
    assert await session.workspace.resources.read(session.caller, resource.uri) == (resource, data)


async def test_an_updated_resource_is_read_as_it_was_stored(session: StoreSession) -> None:
    first = await session.resource("r", "Old")
    changed = await session.change_resource("r", content="Neu: ä", title="T", description="D")
    assert changed == replace(
        first,
        title="T",
        description="D",
        sha256=sha256("Neu: ä".encode()).hexdigest(),
        size=7,
        updated_at=changed.updated_at,
        version=2,
    )
    assert await stored(session, changed) == [changed] * 4
    cleared = await session.change_resource("r", title="", description="")
    assert (cleared.title, cleared.description, cleared.sha256) == (None, None, changed.sha256)
    assert await session.content(cleared) == "Neu: ä".encode()


async def test_a_text_resource_can_become_binary_but_only_text_content_can_become_text(
    session: StoreSession,
) -> None:
    await session.resource("r", "Words")
    await session.change_resource("r", mime_type="image/png")
    await session.change_resource("r", mime_type="text/markdown")
    await session.change_resource("r", mime_type="image/png", content="/w==")
    with pytest.raises(Invalid):
        await session.change_resource("r", mime_type="text/plain")
    resource, data = await session.workspace.resources.read(session.caller, "file:///r")
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
async def test_an_update_reports_all_problems_with_content_of_the_stored_type(
    session: StoreSession, stored: str | bytes, content: str, problem: str
) -> None:
    await session.resource("r", stored)
    with pytest.raises(Invalid) as refused:
        await session.change_resource("r", content=content, description="x" * 4001)
    assert [item.message for item in refused.value.problems] == [
        problem,
        "Description must be at most 4000 characters, but has 4001",
    ]
    await check_log(session.store)


async def test_resources_with_equal_content_are_independent(session: StoreSession) -> None:
    await session.resource("a", EVERY_BYTE)
    kept = await session.resource("b", EVERY_BYTE)
    await session.delete_resource("a")
    assert await session.content(kept) == EVERY_BYTE
    changed = await session.change_resource("b", content="AAAA")
    again = await session.resource("c", EVERY_BYTE)
    assert (await session.content(changed), await session.content(again)) == (b"\0\0\0", EVERY_BYTE)


async def test_names_and_uris_are_unique_in_a_project(session: StoreSession) -> None:
    await session.resource("one", uri="file:///1")
    with pytest.raises(NameTaken):
        await session.resource("one", uri="file:///2")
    with pytest.raises(UriTaken):
        await session.resource("two", uri="file:///1")
    await session.resource("ONE", uri="FILE:///1")
    await session.resource("t", uri="file:///{x}")
    elsewhere = await open_session(session.store, "elsewhere")
    await elsewhere.resource("one", uri="file:///1")
    await check_log(session.store)


@pytest.mark.parametrize("same", ["name", "uri"])
async def test_only_one_of_two_processes_can_create_a_name_or_uri(open_store: OpenStore, same: str) -> None:
    desks = [await open_session(await open_store()) for _ in range(2)]
    for number in range(20):
        parts = [{"name": f"n{number}-{who}", "uri": f"x:{number}-{who}"} for who in range(2)]
        for part in parts:
            part[same] = "same" + str(number) if same == "name" else f"x:same{number}"
        outcomes = await asyncio.gather(
            *(session.resource(**part) for session, part in zip(desks, parts, strict=True)),
            return_exceptions=True,
        )
        expected = {"name": "NameTaken", "uri": "UriTaken"}[same]
        assert {type(each).__name__ for each in outcomes} == {expected, "Resource"}
    await check_log(desks[0].store)


async def test_a_deleted_resource_is_not_found(session: StoreSession) -> None:
    await session.resource("r")
    await session.resource("t", uri="file:///{x}")
    await session.delete_resource("r")
    await session.delete_resource("t")
    with pytest.raises(ResourceNotFound):
        await session.workspace.resources.read(session.caller, "file:///r")
    with pytest.raises(ResourceNotFound):
        await session.delete_resource("r")
    for templates in (True, False):
        assert await session.workspace.resources.listing(session.caller, 0, 10, templates=templates) == []
    assert await session.workspace.resources.templates(session.caller) == []
    assert await session.workspace.resources.uris(session.caller, "", 10) == []
    assert await session.read(lambda transaction: transaction.resources.listing(session.project)) == []


async def test_a_resource_of_another_project_looks_like_a_missing_one(session: StoreSession) -> None:
    elsewhere = await open_session(session.store, "elsewhere")
    await elsewhere.resource("r", "needle")
    await elsewhere.resource("t", uri="file:///{x}")
    with pytest.raises(ResourceNotFound):
        await session.workspace.resources.read(session.caller, "file:///r")
    with pytest.raises(ResourceNotFound):
        await session.change_resource("r", content="Mine")
    for templates in (True, False):
        assert await session.workspace.resources.listing(session.caller, 0, 10, templates=templates) == []
    assert await session.workspace.resources.templates(session.caller) == []
    assert await session.workspace.resources.uris(session.caller, "", 10) == []
    assert await session.workspace.search.ranked(session.caller, RankedQuery("needle")) == RankedPage([], 0)


async def test_listings_of_resources_and_templates_are_in_creation_order(
    session: StoreSession,
) -> None:
    for number in range(12):
        await session.resource(
            f"r{number}", uri=f"x:{{n}}/{number}" if number % 3 == 0 else f"x:{11 - number}"
        )
    await session.change_resource("r1", content="Newer")
    await session.delete_resource("r2")
    await session.delete_resource("r3")
    for templates, expected in (
        (True, ["r0", "r6", "r9"]),
        (False, ["r1", "r4", "r5", "r7", "r8", "r10", "r11"]),
        (None, ["r0", "r1", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11"]),
    ):
        whole = await session.workspace.resources.listing(session.caller, 0, 100, templates=templates)
        assert [item.name for item in whole] == expected
        for limit in (1, 2, 3):
            paged: list[Resource] = []
            while page := await session.workspace.resources.listing(
                session.caller, paged[-1].number if paged else 0, limit, templates=templates
            ):
                assert len(page) <= limit
                paged += page
            assert paged == whole
    assert [item.name for item in await session.workspace.resources.templates(session.caller)] == [
        "r0",
        "r6",
        "r9",
    ]


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
async def test_uris_are_completed_but_templates_are_not(
    session: StoreSession, prefix: str, found: list[str]
) -> None:
    for name, uri in enumerate(("note://x", "file:///ab", "file:///a_b", "file:///a%20b", "file:///a{n}")):
        await session.resource(str(name), uri=uri)
    assert await session.workspace.resources.uris(session.caller, prefix, 100) == found
    assert await session.workspace.resources.uris(session.caller, prefix, 1) == found[:1]


async def test_numbers_and_ids_of_deleted_resources_are_not_reused(open_store: OpenStore) -> None:
    session = await open_session(await open_store())
    seen: list[Resource] = []
    for _ in range(2):
        for _ in range(5):
            seen.append(await session.resource("r"))
            await session.delete_resource("r")
        await session.store.close()
        session = await open_session(await open_store())
    numbers = [resource.number for resource in seen]
    assert numbers == sorted(set(numbers))
    assert len({resource.id for resource in seen}) == len(seen)
