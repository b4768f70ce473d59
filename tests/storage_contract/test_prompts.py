"""Prompts in a store: looking them up, lists, pages and tags."""

from __future__ import annotations

import asyncio
from itertools import combinations
from typing import Any

import pytest
from msgspec.structs import replace

from dittybag.domain.errors import NameTaken, PromptNotFound, TitleTaken
from dittybag.domain.names import NAME_LENGTH
from dittybag.domain.ports import Transaction
from dittybag.domain.prompts import CONTENT_BYTES, TITLE_LENGTH, Argument, Prompt, PromptOrder, TagCount
from dittybag.services.prompt_service import PromptAddress
from tests.storage_contract.desk import Desk, OpenStore, desk_at
from tests.storage_contract.ledger import check_books

ODD_TEXT = "Zeile 1\r\nZeile 2\t\x01\x7f\u2028 \"'`;-- %_\\ 👩‍👩‍👧 שלום \ufeff\uffff e\u0301 ß İ ς"


async def stored(desk: Desk, prompt: Prompt) -> list[Prompt | None]:
    """A prompt as each way to look it up finds it."""
    return [
        await desk.read(lambda transaction: transaction.prompts.by_id(desk.project, prompt.id)),
        await desk.read(lambda transaction: transaction.prompts.by_name(desk.project, prompt.name)),
        await desk.workspace.prompts.get(desk.caller, PromptAddress(id=prompt.id.upper())),
        *[
            one
            for one in await desk.read(lambda transaction: transaction.prompts.in_project(desk.project))
            if one.number == prompt.number
        ],
    ]


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"content": ODD_TEXT, "description": ODD_TEXT, "title": "Ein Titel: 👩‍👩‍👧 \"'%_\\ שלום"},
        {"content": "ä" * (CONTENT_BYTES // 2), "description": "ß" * 4000, "title": "t" * TITLE_LENGTH},
        {"tags": ["b", "a", "UPPER", "a", "x_-9"]},
        {
            "arguments": (
                Argument(name="plain"),
                Argument(name="full", description=ODD_TEXT, required=True, choices=("a", "ß", '"')),
            )
        },
    ],
)
async def test_a_prompt_comes_back_as_it_was_stored(desk: Desk, parts: dict[str, Any]) -> None:
    prompt = await desk.prompt("n" * NAME_LENGTH, **parts)
    for field, value in parts.items():
        expected = ("b", "a", "upper", "x_-9") if field == "tags" else value
        assert getattr(prompt, field) == expected
    assert (prompt.version, prompt.created_at) == (1, prompt.updated_at)
    assert await stored(desk, prompt) == [prompt] * 4


async def test_an_updated_prompt_comes_back_as_it_was_updated(desk: Desk) -> None:
    first = await desk.prompt("p", tags=["a"])
    changed = await desk.change_prompt(
        "p",
        title="Other",
        content=ODD_TEXT,
        description="D",
        tags=("b", "c"),
        arguments=(Argument(name="x"),),
    )
    assert changed == replace(
        first,
        title="Other",
        content=ODD_TEXT,
        description="D",
        tags=("b", "c"),
        arguments=(Argument(name="x"),),
        updated_at=changed.updated_at,
        version=2,
    )
    assert changed.updated_at > first.updated_at
    assert await stored(desk, changed) == [changed] * 4


async def test_a_deleted_prompt_is_found_by_nobody(desk: Desk) -> None:
    prompt = await desk.prompt("p", tags=["a"])
    await desk.delete_prompt("p")
    for address in (PromptAddress(id=prompt.id), PromptAddress(name="p")):
        with pytest.raises(PromptNotFound):
            await desk.workspace.prompts.get(desk.caller, address)
    assert not await desk.read(lambda transaction: transaction.prompts.name_taken(desk.project, "p"))
    assert not await desk.read(lambda transaction: transaction.prompts.title_taken(desk.project, "p"))
    assert (await desk.workspace.prompts.recent(desk.caller, 10, 0)).total == 0
    assert await desk.workspace.prompts.listing(desk.caller, 0, 10) == []
    assert await desk.workspace.prompts.tags(desk.caller) == []


async def test_names_and_titles_are_unique_in_a_project(desk: Desk) -> None:
    await desk.prompt("one", title="Eins")
    await desk.prompt("two", title="Zwei")
    with pytest.raises(NameTaken):
        await desk.prompt("one", title="Anders")
    with pytest.raises(TitleTaken):
        await desk.prompt("three", title="Eins")
    with pytest.raises(TitleTaken):
        await desk.change_prompt("two", title="Eins")
    await desk.change_prompt("two", title="Zwei", content="The same title is no clash")
    await desk.prompt("ONE", title="EINS")
    elsewhere = await desk_at(desk.store, "elsewhere")
    await elsewhere.prompt("one", title="Eins")

    async def taken(transaction: Transaction) -> list[bool]:
        names = [await transaction.prompts.name_taken(desk.project, name) for name in ("ONE", "One")]
        titles = [await transaction.prompts.title_taken(desk.project, title) for title in ("EINS", "eins")]
        return names + titles

    assert await desk.read(taken) == [True, False, True, False]
    await check_books(desk.store)


async def test_what_is_not_given_is_made_from_what_is_and_made_free(desk: Desk) -> None:
    await desk.prompt("notes")
    named = await desk.prompt("Notes", title="notes (2)")
    create = desk.workspace.prompts.create
    derived = [(await create(desk.caller, content="c", title=title))[0] for title in ("Notes!", "NOTES?")]
    assert [prompt.name for prompt in derived] == ["notes-2", "notes-3"]
    elsewhere = await desk_at(desk.store, "elsewhere")
    await elsewhere.prompt("x", title="long")
    assert (await elsewhere.prompt("long")).title == "long (2)"
    assert named.title == "notes (2)"


@pytest.mark.parametrize("same", ["name", "title"])
async def test_of_two_processes_that_want_one_name_or_title_one_gets_it(
    open_store: OpenStore, same: str
) -> None:
    desks = [await desk_at(await open_store()) for _ in range(2)]
    for number in range(20):
        parts = [{"name": f"n{number}-{who}", "title": f"t{number}-{who}"} for who in range(2)]
        for part in parts:
            part[same] = f"same {number}".replace(" ", "-")
        outcomes = await asyncio.gather(
            *(desk.prompt(**part) for desk, part in zip(desks, parts, strict=True)), return_exceptions=True
        )
        expected = ["NameTaken" if same == "name" else "TitleTaken", "Prompt"]
        assert sorted((type(each).__name__ for each in outcomes), key=expected.index) == expected
    await check_books(desks[0].store)


async def test_a_prompt_of_another_project_looks_like_a_missing_one(desk: Desk) -> None:
    elsewhere = await desk_at(desk.store, "elsewhere")
    prompt = await elsewhere.prompt("hidden", "needle", tags=["a"])
    for address in (PromptAddress(id=prompt.id), PromptAddress(name="hidden")):
        with pytest.raises(PromptNotFound):
            await desk.workspace.prompts.get(desk.caller, address)
        with pytest.raises(PromptNotFound):
            await desk.workspace.prompts.delete(desk.caller, address)
    assert await desk.workspace.prompts.listing(desk.caller, 0, 10) == []
    assert (await desk.workspace.prompts.recent(desk.caller, 10, 0)).prompts == []
    assert (await desk.workspace.prompts.search(desk.caller, "needle", 10, 0)).prompts == []
    assert (await desk.workspace.prompts.by_tags(desk.caller, ["a"], 10, 0))[0].prompts == []
    assert await desk.workspace.prompts.tags(desk.caller) == []


async def test_the_listing_is_in_the_order_of_creation_whatever_is_changed_later(desk: Desk) -> None:
    for name in ("c", "a", "b", "d"):
        await desk.prompt(name, description=f"about {name}", arguments=[Argument(name=f"of_{name}")])
    await desk.change_prompt("c", content="Newer")
    await desk.delete_prompt("a")
    listing = await desk.workspace.prompts.listing(desk.caller, 0, 10)
    assert [(item.name, item.title, item.description, item.arguments) for item in listing] == [
        (name, name, f"about {name}", (Argument(name=f"of_{name}"),)) for name in ("c", "b", "d")
    ]
    assert sorted(item.number for item in listing) == [item.number for item in listing]


async def test_pages_of_the_listing_go_on_after_a_number_even_if_that_one_is_gone(desk: Desk) -> None:
    prompts = [await desk.prompt(f"p{number}") for number in range(10)]
    after = prompts[3].number
    await desk.delete_prompt("p3")
    page = await desk.workspace.prompts.listing(desk.caller, after, 3)
    assert [item.name for item in page] == ["p4", "p5", "p6"]
    assert await desk.workspace.prompts.listing(desk.caller, prompts[-1].number, 3) == []


async def test_recent_prompts_are_those_updated_last_in_pages_of_any_size(desk: Desk) -> None:
    for number in range(10):
        await desk.prompt(f"p{number}", "x" * 199 + "ä" * number)
    for number in (4, 0, 7):
        await desk.change_prompt(f"p{number}", description="touched")
    await desk.delete_prompt("p5")
    expected = [f"p{number}" for number in (7, 0, 4, 9, 8, 6, 3, 2, 1)]
    whole = await desk.workspace.prompts.recent(desk.caller, 100, 0)
    assert ([item.name for item in whole.prompts], whole.total) == (expected, 9)
    assert await desk.read(lambda transaction: transaction.prompts.count(desk.project)) == 9
    for limit in (1, 2, 4, 9):
        pages = [await desk.workspace.prompts.recent(desk.caller, limit, at) for at in range(0, 12, limit)]
        assert [item for page in pages for item in page.prompts] == whole.prompts
        assert {page.total for page in pages} == {9}


async def test_a_summary_shows_the_beginning_of_the_content(desk: Desk) -> None:
    long = await desk.prompt("long", "ä" * 201, tags=["b", "a"])
    await desk.prompt("short", "ä" * 200)
    short, summary = (await desk.workspace.prompts.recent(desk.caller, 10, 0)).prompts
    assert short.snippet == "ä" * 200
    assert summary.snippet == "ä" * 200 + "..."
    assert (summary.id, summary.name, summary.title) == (long.id, "long", "long")
    assert (summary.tags, summary.created_at, summary.updated_at) == (
        ("b", "a"),
        long.created_at,
        long.updated_at,
    )


async def test_numbers_and_ids_of_deleted_prompts_never_come_back(open_store: OpenStore) -> None:
    desk = await desk_at(await open_store())
    seen: list[Prompt] = []
    for _ in range(2):
        for _ in range(5):
            seen.append(await desk.prompt("p"))
            await desk.delete_prompt("p")
        await desk.store.close()
        desk = await desk_at(await open_store())
    numbers = [prompt.number for prompt in seen]
    assert numbers == sorted(set(numbers))
    assert len({prompt.id for prompt in seen}) == len(seen)


TAGGED = {
    "p0": (),
    "p1": ("a",),
    "p2": ("a", "b"),
    "p3": ("c", "b", "a"),
    "p4": ("c",),
    "p5": ("ab", "a-b", "a_b", "_"),
}


async def test_any_of_several_tags_finds_a_prompt_once_and_in_pages(desk: Desk) -> None:
    for name, tags in TAGGED.items():
        await desk.prompt(name, tags=tags)
    await desk.change_prompt("p1", content="Newer")
    order = ["p1", "p5", "p4", "p3", "p2", "p0"]
    every = ["a", "b", "c", "ab", "a_b", "nobody's"]
    for size in range(len(every) + 1):
        for wanted in combinations(every, size):
            expected = [name for name in order if set(TAGGED[name]) & set(wanted)]
            page, carried = await desk.workspace.prompts.by_tags(desk.caller, wanted, 100, 0)
            assert ([item.name for item in page.prompts], page.total) == (expected, len(expected))
            assert carried == [tag for tag in wanted if tag != "nobody's"]
            pages = [
                (await desk.workspace.prompts.by_tags(desk.caller, wanted, 2, at))[0] for at in range(0, 6, 2)
            ]
            assert [item.name for page in pages for item in page.prompts] == expected
            assert {page.total for page in pages} == {len(expected)}


async def test_tags_are_asked_for_in_any_case(desk: Desk) -> None:
    await desk.prompt("p", tags=["Draft"])
    page, carried = await desk.workspace.prompts.by_tags(desk.caller, ["DRAFT"], 10, 0)
    assert (page.total, carried) == (1, ["draft"])


async def test_tags_in_use_are_counted_the_most_used_first(desk: Desk) -> None:
    for name, tags in TAGGED.items():
        await desk.prompt(name, tags=tags)
    await desk.change_prompt("p2", tags=("b", "z"))
    await desk.delete_prompt("p4")
    assert await desk.workspace.prompts.tags(desk.caller) == [
        TagCount(name, count)
        for name, count in [
            ("a", 2),
            ("b", 2),
            ("_", 1),
            ("a-b", 1),
            ("a_b", 1),
            ("ab", 1),
            ("c", 1),
            ("z", 1),
        ]
    ]


async def test_tags_follow_a_prompt_through_update_deletion_and_undo(desk: Desk) -> None:
    async def carrying(tag: str) -> int:
        return (await desk.workspace.prompts.by_tags(desk.caller, [tag], 10, 0))[0].total

    await desk.prompt("p", tags=["a", "b"])
    await desk.change_prompt("p", tags=("b", "c"))
    assert [await carrying(tag) for tag in "abc"] == [0, 1, 1]
    await desk.change_prompt("p", tags=())
    assert [await carrying(tag) for tag in "abc"] == [0, 0, 0]
    await desk.undo((await desk.newest_change()).seq)
    assert [await carrying(tag) for tag in "abc"] == [0, 1, 1]
    await desk.delete_prompt("p")
    assert [await carrying(tag) for tag in "abc"] == [0, 0, 0]
    await desk.undo((await desk.newest_change()).seq)
    assert [await carrying(tag) for tag in "abc"] == [0, 1, 1]


async def test_chosen_prompts_carry_every_tag_have_the_text_and_come_in_the_order_asked_for(
    desk: Desk,
) -> None:
    made = {}
    for number, (name, tags) in enumerate(reversed(TAGGED.items())):
        text = f"{'x' * 300} {'Straße' if number % 2 else 'ab%_'} end"
        arguments = [Argument(name=f"a{at}") for at in range(number)]
        made[name] = await desk.prompt(name, text, tags=tags, description=f"on {name}", arguments=arguments)
    await desk.change_prompt("p3", description="newer")
    await (await desk_at(desk.store, "elsewhere")).prompt("p9", "strasse", tags=["a", "b", "c"])
    orders: dict[PromptOrder, list[str]] = {
        "updated": ["p3", "p0", "p1", "p2", "p4", "p5"],
        "created": ["p0", "p1", "p2", "p3", "p4", "p5"],
        "name": sorted(TAGGED),
    }
    texts = {"": TAGGED, "STRASSE": ("p4", "p2", "p0"), "b%_": ("p5", "p3", "p1"), "P1": ("p1",), "no": ()}
    for order, names in orders.items():
        for size in range(3):
            for wanted in combinations(["a", "b", "c", "a_b", "nobody's"], size):
                for query, having in texts.items():
                    expected = [n for n in names if set(wanted) <= set(TAGGED[n]) and n in having]
                    pages = [
                        await desk.workspace.prompts.filter(
                            desk.caller, query=query, tags=wanted, order=order, limit=2, offset=at
                        )
                        for at in range(0, 8, 2)
                    ]
                    assert [item.name for page in pages for item in page.entries] == expected
                    assert {(page.total, page.is_more) for page in pages} == {(len(expected), False)}
    (entry,) = (await desk.workspace.prompts.filter(desk.caller, tags=["C", "B"], limit=9, offset=0)).entries
    assert (entry.id, entry.title, entry.description, entry.argument_count) == (
        made["p3"].id,
        "p3",
        "newer",
        2,
    )
    assert (entry.snippet, entry.tags) == ("x" * 200 + "...", ("c", "b", "a"))
    assert (entry.created_at, entry.updated_at) > (made["p3"].created_at, made["p3"].updated_at)
    (found, *_) = (
        await desk.workspace.prompts.filter(desk.caller, query="straße", limit=1, offset=0)
    ).entries
    assert "Straße" in found.snippet


@pytest.mark.parametrize("wanted", [{"query": "needle"}, {"tags": ["a"]}, {"query": "n", "tags": ["a"]}])
async def test_of_very_many_that_fit_the_first_are_found(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any]
) -> None:
    monkeypatch.setattr("dittybag.services.prompt_service.MOST_FOUND", 5)
    for number in range(8):
        await desk.prompt(f"p{number}", "needle", tags=["a"])
    pages = [
        await desk.workspace.prompts.filter(desk.caller, **wanted, order="name", limit=2, offset=at)
        for at in range(0, 8, 2)
    ]
    names = [[item.name for item in page.entries] for page in pages]
    assert names == [["p0", "p1"], ["p2", "p3"], ["p4"], []]
    assert {(page.total, page.is_more) for page in pages} == {(5, True)}
    whole = await desk.workspace.prompts.filter(desk.caller, order="name", limit=9, offset=0)
    assert (len(whole.entries), whole.total, whole.is_more) == (8, 8, False)
