"""The ranked search over prompts, resources and tasks."""

from __future__ import annotations

from typing import Any

import pytest

from dittybag.domain.errors import Invalid
from dittybag.services.search_service import RankedHit, RankedPage, RankedQuery
from tests.storage_contract.store_session import ACTOR, StoreSession, open_session


async def search(session: StoreSession, text: str, **more: Any) -> RankedPage:
    return await session.workspace.search.ranked(session.caller, RankedQuery(text, **more))


async def refs(session: StoreSession, text: str, **more: Any) -> list[str]:
    return [hit.ref for hit in (await search(session, text, **more)).hits]


async def test_words_are_found_in_any_order_and_form(session: StoreSession) -> None:
    for number in range(20):
        await session.task(f"Task number {number} for the sprint")
    await session.prompt("reviewer", "Reviews of database migrations")
    page = await search(session, "the sprint task", limit=5)
    assert (page.total, len(page.hits)) == (20, 5)
    assert await refs(session, "migrating a database review") == ["reviewer"]


async def test_every_kind_is_found_in_each_of_its_texts(session: StoreSession) -> None:
    await session.prompt(
        "alpha-name", "alphacontent", title="alphatitle", description="alphadescription", tags=["alphatag"]
    )
    await session.resource(
        "beta.txt", "betacontent", uri="file:///betafolder/x", title="betatitle", description="betatold"
    )
    await session.task("gammatitle", notes="gammanotes", project="gammaproject")
    for word in ("name", "alphacontent", "alphatitle", "alphadescription", "alphatag"):
        assert await refs(session, word) == ["alpha-name"]
    for word in ("beta", "betacontent", "betafolder", "betatitle", "betatold"):
        assert await refs(session, word) == ["file:///betafolder/x"]
    for word in ("gammatitle", "gammanotes", "gammaproject"):
        assert await refs(session, word) == ["task:1"]


async def test_a_result_says_what_it_is_when_it_was_changed_by_whom_and_where_it_matches(
    session: StoreSession,
) -> None:
    text = f"{'Filler. ' * 100}Then deploy the service.{' More.' * 100}"
    prompt = await session.prompt("release", text, title="How to release")
    (hit,) = (await search(session, "deploying")).hits
    assert hit == RankedHit(
        kind="prompt",
        ref="release",
        title="How to release",
        at=prompt.updated_at,
        actor=ACTOR,
        passage=hit.passage,
        id=prompt.id,
    )
    assert "Then deploy the service." in hit.passage
    assert len(hit.passage) < 210


async def test_titles_count_more_than_tags_and_descriptions_and_those_more_than_contents(
    session: StoreSession,
) -> None:
    await session.prompt("d", "zebra and other words")
    await session.prompt("c", "other words", description="zebra and other words")
    await session.prompt("a", "other words", title="zebra")
    assert await refs(session, "zebra") == ["a", "c", "d"]


async def test_rare_words_count_more_and_some_words_are_enough(session: StoreSession) -> None:
    for number in range(5):
        await session.prompt(f"common-{number}", "how to write a letter")
    await session.prompt("rare", "how to write a haiku")
    found = await refs(session, "how do I write a haiku about volcanoes")
    assert found[0] == "rare"
    assert len(found) == 6


async def test_the_newest_of_equal_results_is_first(session: StoreSession) -> None:
    for name in ("one", "two", "three"):
        await session.prompt(name, "the same words")
    await session.change_prompt("one", content="the words same")
    assert await refs(session, "same") == ["one", "three", "two"]
    assert await refs(session, "same", limit=1, offset=1) == ["three"]


async def test_pages_return_every_result_once(session: StoreSession) -> None:
    for number in range(25):
        await session.prompt(f"p-{number}", "paged words " * (number % 4 + 1))
    found = [
        ref for offset in range(0, 30, 7) for ref in await refs(session, "paged", limit=7, offset=offset)
    ]
    assert len(found) == len(set(found)) == 25
    assert (await search(session, "paged", limit=7, offset=21)).total == 25
    assert await refs(session, "paged", offset=25) == []


async def test_kinds_narrow_the_results(session: StoreSession) -> None:
    await session.prompt("p", "shared")
    await session.resource("r", "shared")
    await session.task("shared")
    assert {hit.kind for hit in (await search(session, "shared")).hits} == {"prompt", "resource", "task"}
    assert await refs(session, "shared", kinds=("task",)) == ["task:1"]
    assert await refs(session, "shared", kinds=("prompt", "resource")) in (
        ["p", "file:///r"],
        ["file:///r", "p"],
    )
    assert await refs(session, "shared", kinds=("library_prompt",)) == []


async def test_quoted_text_is_an_exact_substring(session: StoreSession) -> None:
    await session.prompt("exact", "Handle the error handling code.", description="Uses a-b_c!")
    await session.prompt("words", "The code handles an error.")
    await session.task("An Error Handling task")
    assert await refs(session, '"error handling"') in (["exact", "task:1"], ["task:1", "exact"])
    assert await refs(session, '"rror handl"', kinds=("prompt",)) == ["exact"]
    assert await refs(session, '"a-b_c!"') == ["exact"]
    assert await refs(session, '"error handling" code', kinds=("prompt",)) == ["exact"]
    assert await refs(session, '"error handling" "no such text"') == []
    assert await refs(session, '"error  handling"') == []


async def test_the_last_word_may_be_incomplete(session: StoreSession) -> None:
    await session.prompt("deploy", "deployment of the service")
    assert await refs(session, "service deplo") == ["deploy"]
    assert await refs(session, "deplo") == []
    for text in ("d", "deplo", "deploym", "deployments"):
        assert await refs(session, text, incomplete=True) == ["deploy"]
    assert await refs(session, "deplo ", incomplete=True) == []


@pytest.mark.parametrize(
    ("stored", "query"),
    [
        ("Stra\u00dfe", "STRASSE"),
        ("caf\u00e9", "cafe\u0301"),
        ("cafe\u0301", "CAFE"),
        ("\uff26\uff35\uff2c\uff2c width", "full"),
        ("na\u00efvet\u00e9", "naivete"),
        ("\u01c4ep", "d\u017eep"),
        ("snake_case_name", "case"),
        ("\u0130stanbul", "istanbul"),
    ],
)
async def test_case_accents_composition_and_width_do_not_matter(
    session: StoreSession, stored: str, query: str
) -> None:
    await session.prompt("other", "something else")
    await session.prompt("p", stored)
    assert await refs(session, query) == ["p"]
    assert await refs(session, query, incomplete=True) == ["p"]


@pytest.mark.parametrize(
    ("stored", "queries"),
    [
        ("全文検索の使い方", ["検索", "方", "全文検索"]),
        ("我们的数据库迁移", ["数据库", "迁移", "库"]),
        ("การค้นหาข้อความ", ["ค้นหา", "ข้อความ"]),
        ("한국어를 검색하다", ["한국어", "검색"]),
    ],
    ids=("Japanese", "Chinese", "Thai", "Korean"),
)
async def test_scripts_without_spaces_are_found_within_a_text(
    session: StoreSession, stored: str, queries: list[str]
) -> None:
    await session.prompt("other", "天気")
    await session.prompt("p", stored)
    for query in queries:
        assert (await refs(session, query))[:1] == ["p"]


async def test_the_nearest_spelling_is_suggested_only_without_results(session: StoreSession) -> None:
    await session.prompt("k", "Deploy to kubernetes with care")
    await session.task("Call the dentist")
    for query, suggestion in (
        ("kuberentes", "kubernetes"),
        ("kubenretes depoly", "kubernetes deploy"),
        ("ubernetes", "kubernetes"),
        ("dentits", "dentist"),
        ("KUBERNTES", "kubernetes"),
    ):
        page = await search(session, query)
        assert (page.hits, page.total, page.suggestion) == ([], 0, suggestion)
        assert (await search(session, suggestion)).total
    assert (await search(session, "kubernetes")).suggestion is None
    assert (await search(session, "xylophone")).suggestion is None
    assert (await search(session, '"xylophone-kubernets"')).suggestion is None


async def test_an_update_and_a_deletion_change_the_results(session: StoreSession) -> None:
    await session.prompt("p", "first words", tags=["oldtag"])
    await session.resource("r", "first words")
    await session.change_prompt("p", content="second words", tags=["newtag"])
    await session.change_resource("r", content="second words")
    assert await refs(session, "first") == await refs(session, "oldtag") == []
    assert set(await refs(session, "second")) == {"p", "file:///r"}
    assert await refs(session, "newtag") == ["p"]
    await session.delete_prompt("p")
    await session.delete_resource("r")
    assert await refs(session, "second") == []
    await session.undo((await session.newest_change()).seq)
    assert await refs(session, "second") == ["file:///r"]


async def test_a_search_in_the_transaction_of_a_write_sees_it(session: StoreSession) -> None:
    await session.prompt("p", "before")
    await session.prompt("q", "pending words")
    assert await refs(session, "pending") == ["q"]


async def test_only_the_project_and_the_tasks_of_the_caller_are_found(session: StoreSession) -> None:
    other = await open_session(session.store, "other", "ann")
    for one in (session, other):
        await one.prompt("p", "secret words")
        await one.resource("r", "secret words")
        await one.task("secret words")
    await other.prompt("only", "hidden kubernetes")
    assert sorted(await refs(session, "secret")) == ["file:///r", "p", "task:1"]
    assert sorted(await refs(other, "secret")) == ["file:///r", "p", "task:2"]
    assert await refs(session, "hidden") == []
    assert sorted(await refs(session, '"secret words"')) == ["file:///r", "p", "task:1"]
    assert (await search(session, "kuberentes")).suggestion is None


async def test_binary_content_is_not_searched(session: StoreSession) -> None:
    await session.resource("photo", b"words in bytes", description="a picture")
    assert await refs(session, "bytes") == []
    assert await refs(session, "picture") == ["file:///photo"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        '"',
        '""',
        "'",
        "*",
        "a AND b",
        "(",
        "name : x",
        "NEAR(",
        "a* -b ^c",
        "\\",
        "'a':*",
        "a & | !",
    ],
)
async def test_no_text_is_a_syntax_error(session: StoreSession, text: str) -> None:
    await session.prompt("p", "a text")
    for incomplete in (False, True):
        assert (await search(session, text, incomplete=incomplete)).total in (0, 1)


async def test_long_texts_and_queries_are_bounded(session: StoreSession) -> None:
    words = " ".join(f"w{number:x}{number * 7919:x}" for number in range(60_000))
    await session.prompt("long", words[:900_000] + " needle")
    await session.resource(
        "distinct",
        "\n".join(chr(0x4E00 + at % 20000) + chr(0x4E00 + at * 7 % 20000) for at in range(200_000)),
    )
    assert (await search(session, " ".join(["needle"] * 140)[:1000])).total >= 0
    assert await refs(session, "w0", limit=1) in (["long"], [])
    with pytest.raises(Invalid):
        await search(session, "x" * 1001)
