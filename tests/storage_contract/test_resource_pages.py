"""Resources as people choose among them: narrowed, ordered, in pages."""

from __future__ import annotations

import pytest

from dittybag.domain.errors import Invalid, Outdated, ResourceNotFound
from dittybag.domain.ports import ResourceOrder
from dittybag.domain.resources import Resource
from dittybag.services.resource_service import ResourceChange
from tests.storage_contract.desk import Desk, desk_at


async def filled(desk: Desk) -> None:
    """Five resources that differ in everything they can be narrowed and ordered by."""
    await desk.resource("beta", "four", uri="file:///Docs/b.md", mime_type="text/markdown")
    await desk.resource("Alpha", "x" * 50, uri="note://a", title="Größe 100%", mime_type="text/plain")
    await desk.resource("gamma", "", uri="note://{name}", title="GRÖSSE", mime_type="text/markdown")
    await desk.resource("delta_1", b"\xff" * 20, uri="data://1", mime_type="image/png")
    await desk.resource("delta-2", "12345", uri="note://Straße", mime_type="text/csv")
    await desk.change_resource("beta", description="Changed")


async def names(
    desk: Desk, text: str = "", order: ResourceOrder = "name", kind: str | None = None
) -> list[str]:
    page = await desk.workspace.resources.page(desk.caller, text=text, order=order, mime_type=kind, limit=100)
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
async def test_resources_are_ordered(desk: Desk, order: ResourceOrder, expected: list[str]) -> None:
    await filled(desk)
    assert await names(desk, order=order) == expected
    for limit in (1, 2, 3):
        paged: list[Resource] = []
        while len(paged) < len(expected):
            page = await desk.workspace.resources.page(
                desk.caller, order=order, limit=limit, offset=len(paged)
            )
            assert page.total == len(expected)
            assert len(page.resources) == min(limit, len(expected) - len(paged))
            paged += page.resources
        assert [resource.name for resource in paged] == expected
    beyond = await desk.workspace.resources.page(desk.caller, order=order, limit=10, offset=5)
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
async def test_resources_are_narrowed_by_name_title_and_uri(
    desk: Desk, text: str, expected: list[str]
) -> None:
    await filled(desk)
    assert await names(desk, text) == expected


async def test_resources_are_narrowed_by_type(desk: Desk) -> None:
    await filled(desk)
    assert await names(desk, kind="text/markdown") == ["beta", "gamma"]
    assert await names(desk, "note:", kind="text/markdown") == ["gamma"]
    assert await names(desk, kind="text/") == []
    page = await desk.workspace.resources.page(desk.caller, text="no such thing", limit=1)
    assert page.types == [("text/markdown", 2), ("image/png", 1), ("text/csv", 1), ("text/plain", 1)]
    assert await desk.read(lambda it: it.resources.types(desk.project, 2)) == page.types[:2]


async def test_a_page_has_nothing_of_other_projects(desk: Desk) -> None:
    await filled(desk)
    elsewhere = await desk_at(desk.store, "elsewhere")
    page = await elsewhere.workspace.resources.page(elsewhere.caller, limit=10)
    assert (page.total, page.resources, page.types) == (0, [], [])


async def test_a_text_that_nobody_can_look_for_is_refused(desk: Desk) -> None:
    for text in ("\0", "x" * 1001):
        with pytest.raises(Invalid):
            await desk.workspace.resources.page(desk.caller, text=text, limit=10)


async def test_a_resource_is_found_by_its_id_whatever_it_is_called(desk: Desk) -> None:
    first = await desk.resource("r")
    change = ResourceChange(name="s", uri="file:///s", content="New")
    changed, _ = await desk.workspace.resources.update(desk.caller, "r", change)
    found = await desk.workspace.resources.by_id(desk.caller, first.id)
    assert found == changed
    assert await desk.workspace.resources.contents(desk.caller, [first, found]) == [b"Words", b"New"]
    elsewhere = await desk_at(desk.store, "elsewhere")
    for caller, wanted in ((elsewhere.caller, first.id), (desk.caller, "nobody")):
        with pytest.raises(ResourceNotFound):
            await desk.workspace.resources.by_id(caller, wanted)
    with pytest.raises(ValueError, match="another project"):
        await desk.workspace.resources.contents(elsewhere.caller, [first])


async def test_an_update_of_an_outdated_version_changes_nothing(desk: Desk) -> None:
    first = await desk.resource("r", "one")
    await desk.change_resource("r", content="two")
    change = ResourceChange(content="three")
    with pytest.raises(Outdated):
        await desk.workspace.resources.update(desk.caller, "r", change, version=first.version)
    _, content = await desk.workspace.resources.read(desk.caller, first.uri)
    assert content == b"two"
    changed, _ = await desk.workspace.resources.update(desk.caller, "r", change, version=2)
    assert changed.version == 3
