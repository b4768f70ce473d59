"""Filtering, sorting and paging of resources."""

from __future__ import annotations

import pytest

from dittybag.domain.errors import Invalid, Outdated, ResourceNotFound
from dittybag.domain.queries import ResourceOrder, ResourceQuery
from dittybag.domain.resources import Resource
from dittybag.services.resource_service import ResourceChange
from tests.storage_contract.store_session import StoreSession, open_session


async def create_samples(session: StoreSession) -> None:
    """Create five resources that differ in every filter and sort field."""
    await session.resource("beta", "four", uri="file:///Docs/b.md", mime_type="text/markdown")
    await session.resource("Alpha", "x" * 50, uri="note://a", title="Größe 100%", mime_type="text/plain")
    await session.resource("gamma", "", uri="note://{name}", title="GRÖSSE", mime_type="text/markdown")
    await session.resource("delta_1", b"\xff" * 20, uri="data://1", mime_type="image/png")
    await session.resource("delta-2", "12345", uri="note://Straße", mime_type="text/csv")
    await session.change_resource("beta", description="Changed")


async def names(
    session: StoreSession, text: str = "", order: ResourceOrder = "name", kind: str | None = None
) -> list[str]:
    page = await session.workspace.resources.page(
        session.caller,
        ResourceQuery(project=session.caller.project, text=text, order=order, mime_type=kind, limit=100),
    )
    assert page.total == len(page.resources)
    return [resource.name for resource in page.resources]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("updated", ["beta", "delta-2", "delta_1", "gamma", "Alpha"]),
        ("name", ["Alpha", "beta", "delta-2", "delta_1", "gamma"]),
        ("size", ["Alpha", "delta_1", "delta-2", "beta", "gamma"]),
        ("type", ["delta_1", "delta-2", "beta", "gamma", "Alpha"]),
    ],
)
async def test_resources_are_sorted(session: StoreSession, order: ResourceOrder, expected: list[str]) -> None:
    await create_samples(session)
    assert await names(session, order=order) == expected
    for limit in (1, 2, 3):
        paged: list[Resource] = []
        while len(paged) < len(expected):
            page = await session.workspace.resources.page(
                session.caller,
                ResourceQuery(project=session.caller.project, order=order, limit=limit, offset=len(paged)),
            )
            assert page.total == len(expected)
            assert len(page.resources) == min(limit, len(expected) - len(paged))
            paged += page.resources
        assert [resource.name for resource in paged] == expected
    beyond = await session.workspace.resources.page(
        session.caller, ResourceQuery(project=session.caller.project, order=order, limit=10, offset=5)
    )
    assert (beyond.total, beyond.resources) == (5, [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ALPHA", ["Alpha"]),
        ("delta_", ["delta_1"]),
        ("0%", ["Alpha"]),
        ("größe", ["Alpha", "gamma"]),
        ("docs/B.MD", ["beta"]),
        ("{name}", ["gamma"]),
        ("note:", ["Alpha", "delta-2", "gamma"]),
        ("straße", ["delta-2"]),
        ("12345", []),
        ("\\", []),
        ("' OR 1=1 --", []),
    ],
)
async def test_resources_are_filtered_by_name_title_and_uri(
    session: StoreSession, text: str, expected: list[str]
) -> None:
    await create_samples(session)
    assert await names(session, text) == expected


async def test_resources_are_filtered_by_type(session: StoreSession) -> None:
    await create_samples(session)
    assert await names(session, kind="text/markdown") == ["beta", "gamma"]
    assert await names(session, "note:", kind="text/markdown") == ["gamma"]
    assert await names(session, kind="text/") == []
    page = await session.workspace.resources.page(
        session.caller, ResourceQuery(project=session.caller.project, text="no such thing", limit=1)
    )
    assert page.types == [("text/markdown", 2), ("image/png", 1), ("text/csv", 1), ("text/plain", 1)]
    assert await session.read(lambda it: it.resources.types(session.project, 2)) == page.types[:2]


async def test_a_page_has_no_resources_of_other_projects(session: StoreSession) -> None:
    await create_samples(session)
    elsewhere = await open_session(session.store, "elsewhere")
    page = await elsewhere.workspace.resources.page(
        elsewhere.caller, ResourceQuery(project=elsewhere.caller.project, limit=10)
    )
    assert (page.total, page.resources, page.types) == (0, [], [])


async def test_an_invalid_query_is_refused(session: StoreSession) -> None:
    for text in ("\0", "x" * 1001):
        with pytest.raises(Invalid):
            await session.workspace.resources.page(
                session.caller, ResourceQuery(project=session.caller.project, text=text, limit=10)
            )


async def test_a_resource_is_found_by_id_after_it_is_renamed(session: StoreSession) -> None:
    first = await session.resource("r")
    change = ResourceChange(name="s", uri="file:///s", content="New")
    changed, _ = await session.workspace.resources.update(session.caller, "r", change)
    found = await session.workspace.resources.by_id(session.caller, first.id)
    assert found == changed
    assert await session.workspace.resources.contents(session.caller, [first, found]) == [b"Words", b"New"]
    elsewhere = await open_session(session.store, "elsewhere")
    for caller, wanted in ((elsewhere.caller, first.id), (session.caller, "nobody")):
        with pytest.raises(ResourceNotFound):
            await session.workspace.resources.by_id(caller, wanted)
    with pytest.raises(ValueError, match="another project"):
        await session.workspace.resources.contents(elsewhere.caller, [first])


async def test_an_update_of_an_outdated_version_changes_nothing(session: StoreSession) -> None:
    first = await session.resource("r", "one")
    await session.change_resource("r", content="two")
    change = ResourceChange(content="three")
    with pytest.raises(Outdated):
        await session.workspace.resources.update(session.caller, "r", change, version=first.version)
    _, content = await session.workspace.resources.read(session.caller, first.uri)
    assert content == b"two"
    changed, _ = await session.workspace.resources.update(session.caller, "r", change, version=2)
    assert changed.version == 3
