"""Storage of prompts: lookup, lists, pages and tags."""

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
from dittybag.domain.queries import PromptQuery
from dittybag.services.prompt_service import PromptAddress, PromptPage
from tests.storage_contract.log_consistency import check_log
from tests.storage_contract.store_session import OpenStore, StoreSession, open_session

ODD_TEXT = "Zeile 1\r\nZeile 2\t\x01\x7f\u2028 \"'`;-- %_\\ 👩‍👩‍👧 שלום \ufeff\uffff e\u0301 ß İ ς"


async def stored(session: StoreSession, prompt: Prompt) -> list[Prompt | None]:
    """Return a prompt as each lookup method finds it."""
    return [
        await session.read(lambda transaction: transaction.prompts.by_id(session.project, prompt.id)),
        await session.read(lambda transaction: transaction.prompts.by_name(session.project, prompt.name)),
        await session.workspace.prompts.get(session.caller, PromptAddress(id=prompt.id.upper())),
        *[
            one
            for one in await session.read(lambda transaction: transaction.prompts.in_project(session.project))
            if one.number == prompt.number
        ],
    ]


async def filter_prompts(session: StoreSession, **conditions: Any) -> PromptPage:
    conditions = {"project": session.project, "max_matches": 1000} | conditions
    return await session.workspace.prompts.page(session.caller, PromptQuery(**conditions))


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
async def test_a_prompt_is_read_as_it_was_stored(session: StoreSession, parts: dict[str, Any]) -> None:
    prompt = await session.prompt("n" * NAME_LENGTH, **parts)
    for field, value in parts.items():
        expected = ("b", "a", "upper", "x_-9") if field == "tags" else value
        assert getattr(prompt, field) == expected
    assert (prompt.version, prompt.created_at) == (1, prompt.updated_at)
    assert await stored(session, prompt) == [prompt] * 4


async def test_an_updated_prompt_is_read_as_it_was_stored(session: StoreSession) -> None:
    first = await session.prompt("p", tags=["a"])
    changed = await session.change_prompt(
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
    assert await stored(session, changed) == [changed] * 4


async def test_a_deleted_prompt_is_not_found(session: StoreSession) -> None:
    prompt = await session.prompt("p", tags=["a"])
    await session.delete_prompt("p")
    for address in (PromptAddress(id=prompt.id), PromptAddress(name="p")):
        with pytest.raises(PromptNotFound):
            await session.workspace.prompts.get(session.caller, address)
    assert not await session.read(lambda transaction: transaction.prompts.name_taken(session.project, "p"))
    assert not await session.read(lambda transaction: transaction.prompts.title_taken(session.project, "p"))
    assert (
        await session.workspace.prompts.page(
            session.caller, PromptQuery(project=session.caller.project, limit=10, offset=0)
        )
    ).total == 0
    assert await session.workspace.prompts.listing(session.caller, 0, 10) == []
    assert await session.workspace.prompts.tags(session.caller) == []


async def test_names_and_titles_are_unique_in_a_project(session: StoreSession) -> None:
    await session.prompt("one", title="Eins")
    await session.prompt("two", title="Zwei")
    with pytest.raises(NameTaken):
        await session.prompt("one", title="Anders")
    with pytest.raises(TitleTaken):
        await session.prompt("three", title="Eins")
    with pytest.raises(TitleTaken):
        await session.change_prompt("two", title="Eins")
    await session.change_prompt("two", title="Zwei", content="The same title is no clash")
    await session.prompt("ONE", title="EINS")
    elsewhere = await open_session(session.store, "elsewhere")
    await elsewhere.prompt("one", title="Eins")

    async def taken(transaction: Transaction) -> list[bool]:
        names = [await transaction.prompts.name_taken(session.project, name) for name in ("ONE", "One")]
        titles = [await transaction.prompts.title_taken(session.project, title) for title in ("EINS", "eins")]
        return names + titles

    assert await session.read(taken) == [True, False, True, False]
    await check_log(session.store)


async def test_a_missing_name_or_title_is_derived_and_made_unique(session: StoreSession) -> None:
    await session.prompt("notes")
    named = await session.prompt("Notes", title="notes (2)")
    create = session.workspace.prompts.create
    derived = [(await create(session.caller, content="c", title=title))[0] for title in ("Notes!", "NOTES?")]
    assert [prompt.name for prompt in derived] == ["notes-2", "notes-3"]
    elsewhere = await open_session(session.store, "elsewhere")
    await elsewhere.prompt("x", title="long")
    assert (await elsewhere.prompt("long")).title == "long (2)"
    assert named.title == "notes (2)"


@pytest.mark.parametrize("same", ["name", "title"])
async def test_only_one_of_two_processes_can_create_a_name_or_title(open_store: OpenStore, same: str) -> None:
    desks = [await open_session(await open_store()) for _ in range(2)]
    for number in range(20):
        parts = [{"name": f"n{number}-{who}", "title": f"t{number}-{who}"} for who in range(2)]
        for part in parts:
            part[same] = f"same {number}".replace(" ", "-")
        outcomes = await asyncio.gather(
            *(session.prompt(**part) for session, part in zip(desks, parts, strict=True)),
            return_exceptions=True,
        )
        expected = ["NameTaken" if same == "name" else "TitleTaken", "Prompt"]
        assert sorted((type(each).__name__ for each in outcomes), key=expected.index) == expected
    await check_log(desks[0].store)


async def test_a_prompt_of_another_project_looks_like_a_missing_one(session: StoreSession) -> None:
    elsewhere = await open_session(session.store, "elsewhere")
    prompt = await elsewhere.prompt("hidden", "needle", tags=["a"])
    for address in (PromptAddress(id=prompt.id), PromptAddress(name="hidden")):
        with pytest.raises(PromptNotFound):
            await session.workspace.prompts.get(session.caller, address)
        with pytest.raises(PromptNotFound):
            await session.workspace.prompts.delete(session.caller, address)
    assert await session.workspace.prompts.listing(session.caller, 0, 10) == []
    assert (
        await session.workspace.prompts.page(
            session.caller, PromptQuery(project=session.caller.project, limit=10, offset=0)
        )
    ).prompts == []
    assert (
        await session.workspace.prompts.page(
            session.caller, PromptQuery(project=session.caller.project, text="needle", limit=10, offset=0)
        )
    ).prompts == []
    assert (await session.workspace.prompts.by_tags(session.caller, ["a"], 10, 0))[0].prompts == []
    assert await session.workspace.prompts.tags(session.caller) == []


async def test_the_listing_is_in_creation_order_regardless_of_updates(
    session: StoreSession,
) -> None:
    for name in ("c", "a", "b", "d"):
        await session.prompt(name, description=f"about {name}", arguments=[Argument(name=f"of_{name}")])
    await session.change_prompt("c", content="Newer")
    await session.delete_prompt("a")
    listing = await session.workspace.prompts.listing(session.caller, 0, 10)
    assert [(item.name, item.title, item.description, item.arguments) for item in listing] == [
        (name, name, f"about {name}", (Argument(name=f"of_{name}"),)) for name in ("c", "b", "d")
    ]
    assert sorted(item.number for item in listing) == [item.number for item in listing]


async def test_the_listing_continues_after_the_number_of_a_deleted_prompt(
    session: StoreSession,
) -> None:
    prompts = [await session.prompt(f"p{number}") for number in range(10)]
    after = prompts[3].number
    await session.delete_prompt("p3")
    page = await session.workspace.prompts.listing(session.caller, after, 3)
    assert [item.name for item in page] == ["p4", "p5", "p6"]
    assert await session.workspace.prompts.listing(session.caller, prompts[-1].number, 3) == []


async def test_recent_prompts_are_paged_by_last_update(session: StoreSession) -> None:
    for number in range(10):
        await session.prompt(f"p{number}", "x" * 199 + "ä" * number)
    for number in (4, 0, 7):
        await session.change_prompt(f"p{number}", description="touched")
    await session.delete_prompt("p5")
    expected = [f"p{number}" for number in (7, 0, 4, 9, 8, 6, 3, 2, 1)]
    whole = await session.workspace.prompts.page(
        session.caller, PromptQuery(project=session.caller.project, limit=100, offset=0)
    )
    assert ([item.name for item in whole.prompts], whole.total) == (expected, 9)
    query = PromptQuery(project=session.project, limit=0)
    assert await session.read(lambda transaction: transaction.prompts.page(query)) == (9, [])
    for limit in (1, 2, 4, 9):
        pages = [
            await session.workspace.prompts.page(
                session.caller, PromptQuery(project=session.caller.project, limit=limit, offset=at)
            )
            for at in range(0, 12, limit)
        ]
        assert [item for page in pages for item in page.prompts] == whole.prompts
        assert {page.total for page in pages} == {9}


async def test_a_summary_has_the_start_of_the_content(session: StoreSession) -> None:
    long = await session.prompt("long", "ä" * 201, tags=["b", "a"])
    await session.prompt("short", "ä" * 200)
    short, summary = (
        await session.workspace.prompts.page(
            session.caller, PromptQuery(project=session.caller.project, limit=10, offset=0)
        )
    ).prompts
    assert short.snippet == "ä" * 200
    assert summary.snippet == "ä" * 200 + "..."
    assert (summary.id, summary.name, summary.title) == (long.id, "long", "long")
    assert (summary.tags, summary.created_at, summary.updated_at) == (
        ("b", "a"),
        long.created_at,
        long.updated_at,
    )


async def test_numbers_and_ids_of_deleted_prompts_are_not_reused(open_store: OpenStore) -> None:
    session = await open_session(await open_store())
    seen: list[Prompt] = []
    for _ in range(2):
        for _ in range(5):
            seen.append(await session.prompt("p"))
            await session.delete_prompt("p")
        await session.store.close()
        session = await open_session(await open_store())
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


async def test_a_prompt_with_several_of_the_tags_is_listed_once(session: StoreSession) -> None:
    for name, tags in TAGGED.items():
        await session.prompt(name, tags=tags)
    await session.change_prompt("p1", content="Newer")
    order = ["p1", "p5", "p4", "p3", "p2", "p0"]
    every = ["a", "b", "c", "ab", "a_b", "nobody's"]
    for size in range(len(every) + 1):
        for wanted in combinations(every, size):
            expected = [name for name in order if set(TAGGED[name]) & set(wanted)]
            page, carried = await session.workspace.prompts.by_tags(session.caller, wanted, 100, 0)
            assert ([item.name for item in page.prompts], page.total) == (expected, len(expected))
            assert carried == [tag for tag in wanted if tag != "nobody's"]
            pages = [
                (await session.workspace.prompts.by_tags(session.caller, wanted, 2, at))[0]
                for at in range(0, 6, 2)
            ]
            assert [item.name for page in pages for item in page.prompts] == expected
            assert {page.total for page in pages} == {len(expected)}


async def test_tags_match_ignoring_case(session: StoreSession) -> None:
    await session.prompt("p", tags=["Draft"])
    page, carried = await session.workspace.prompts.by_tags(session.caller, ["DRAFT"], 10, 0)
    assert (page.total, carried) == (1, ["draft"])


async def test_tags_are_counted_most_used_first(session: StoreSession) -> None:
    for name, tags in TAGGED.items():
        await session.prompt(name, tags=tags)
    await session.change_prompt("p2", tags=("b", "z"))
    await session.delete_prompt("p4")
    assert await session.workspace.prompts.tags(session.caller) == [
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


async def test_tags_are_updated_with_updates_deletions_and_undo(session: StoreSession) -> None:
    async def count_with(tag: str) -> int:
        return (await session.workspace.prompts.by_tags(session.caller, [tag], 10, 0))[0].total

    await session.prompt("p", tags=["a", "b"])
    await session.change_prompt("p", tags=("b", "c"))
    assert [await count_with(tag) for tag in "abc"] == [0, 1, 1]
    await session.change_prompt("p", tags=())
    assert [await count_with(tag) for tag in "abc"] == [0, 0, 0]
    await session.undo((await session.newest_change()).seq)
    assert [await count_with(tag) for tag in "abc"] == [0, 1, 1]
    await session.delete_prompt("p")
    assert [await count_with(tag) for tag in "abc"] == [0, 0, 0]
    await session.undo((await session.newest_change()).seq)
    assert [await count_with(tag) for tag in "abc"] == [0, 1, 1]


async def test_prompts_are_filtered_by_all_tags_and_text_and_sorted(
    session: StoreSession,
) -> None:
    made = {}
    for number, (name, tags) in enumerate(reversed(TAGGED.items())):
        text = f"{'x' * 300} {'Straße' if number % 2 else 'ab%_'} end"
        arguments = [Argument(name=f"a{at}") for at in range(number)]
        made[name] = await session.prompt(
            name, text, tags=tags, description=f"on {name}", arguments=arguments
        )
    await session.change_prompt("p3", description="newer")
    await (await open_session(session.store, "elsewhere")).prompt("p9", "strasse", tags=["a", "b", "c"])
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
                        await filter_prompts(
                            session, text=query, all_tags=wanted, order=order, limit=2, offset=at
                        )
                        for at in range(0, 8, 2)
                    ]
                    assert [item.name for page in pages for item in page.prompts] == expected
                    assert {(page.total, page.is_more) for page in pages} == {(len(expected), False)}
    (entry,) = (await filter_prompts(session, all_tags=("C", "B"), limit=9)).prompts
    assert (entry.id, entry.title, entry.description, entry.argument_count) == (
        made["p3"].id,
        "p3",
        "newer",
        2,
    )
    assert (entry.snippet, entry.tags) == ("x" * 200 + "...", ("c", "b", "a"))
    assert (entry.created_at, entry.updated_at) > (made["p3"].created_at, made["p3"].updated_at)
    (found, *_) = (await filter_prompts(session, text="straße", limit=1)).prompts
    assert "Straße" in found.snippet


@pytest.mark.parametrize(
    "wanted", [{"text": "needle"}, {"all_tags": ("a",)}, {"text": "n", "all_tags": ("a",)}]
)
async def test_filter_results_are_limited_to_the_first_matches(
    session: StoreSession, wanted: dict[str, Any]
) -> None:
    for number in range(8):
        await session.prompt(f"p{number}", "needle", tags=["a"])
    pages = [
        await filter_prompts(session, **wanted, order="name", limit=2, offset=at, max_matches=5)
        for at in range(0, 8, 2)
    ]
    names = [[item.name for item in page.prompts] for page in pages]
    assert names == [["p0", "p1"], ["p2", "p3"], ["p4"], []]
    assert {(page.total, page.is_more) for page in pages} == {(5, True)}
    whole = await filter_prompts(session, order="name", limit=9, max_matches=5)
    assert (len(whole.prompts), whole.total, whole.is_more) == (8, 8, False)
