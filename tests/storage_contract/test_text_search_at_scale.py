"""Search in a larger store: every backend finds the same matches in the same order."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from dittybag.domain.ports import Transaction
from dittybag.domain.prompts import Prompt, PromptOrder, PromptSummary
from dittybag.domain.queries import PromptQuery
from dittybag.domain.text import fold, snippet_around
from tests.repetitions import repetitions
from tests.storage_contract.store_session import StoreSession

DOCUMENTS = repetitions(3_000, 10_000)
QUERIES = repetitions(300, 2_000)
LIMIT = 20
ORDERS: tuple[PromptOrder, ...] = ("updated", "name")

#: Letters with unusual case mappings, special characters of LIKE, regular expressions, SQL and full-text
#: search, combining marks, and various words.
PIECES = [
    *"abcdeABCDE ßẞſKkÅåİıIiςσΣŉǰﬀﬁﬄΐᾳᏸꭰႠⅧΩ%_\\'\"*-^$()[]{}:;+~!?#@&|=<>,./\t\n\u00a0\u2028\ufeff\uffff",
    *["👩‍👩‍👧", "🇩🇪", "e\u0301", "é", "i\u0307", "\u0327\u0301", "שלום", "漢字", "仮名", "हिन्दी", "ไทย"],
    *["Straße", "STRASSE", "ΟΔΥΣΣΕΥΣ", "Οδυσσευς", "İstanbul", "ffi", "SS", "ss"],
    *[
        "select",
        "OR",
        "NOT",
        "NEAR(",
        "null",
        "100%",
        "a_b",
        "x\\y",
        "''",
        '"',
        "--",
        "/*",
        "$1",
        ":p",
        ".*",
        "[a-z]",
    ],
    *["the", "prompt", "Review", "code", "and", "explain", "review", "Dittybag"],
]
#: It is frequent in the newest documents, then does not occur for a long time.
UNEVEN_WORD = "zyxwv"
CASES = (str, str.upper, str.lower, str.title, str.swapcase, str.casefold)


def documents(chance: random.Random) -> list[tuple[str, str]]:
    """Return unique titles, and contents."""
    return [
        (
            f"{number} {text(chance, 4)}".replace("\n", " ")
            .replace("\t", " ")
            .replace("\u2028", " ")
            .strip(),
            text(chance, chance.choice([3, 12, 40])) + f" {number}{_unevenly_spread(number)}",
        )
        for number in range(DOCUMENTS)
    ]


def _unevenly_spread(number: int) -> str:
    """Return a word for every second of the newest documents and for the oldest."""
    is_marked = number % 2 == 0 if number >= DOCUMENTS - 200 else number < 1000
    return f" {UNEVEN_WORD}" if is_marked else ""


def text(chance: random.Random, most: int) -> str:
    return "".join(chance.choice(PIECES) for _ in range(chance.randint(1, most)))


def queries(chance: random.Random, stored: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield parts of stored texts with other case, and texts that may not occur, many of them very short."""
    for number in range(QUERIES):
        if number % 3 == 0:
            yield text(chance, chance.choice([1, 1, 2, 3, 5]))
            continue
        whole = chance.choice(stored)[number % 2]
        start = chance.randrange(len(whole))
        piece: str = chance.choice(CASES)(whole[start : start + chance.choice([1, 2, 3, 4, 8, 30])])
        yield piece


async def check_first_matches(session: StoreSession, query: PromptQuery, newest_first: Sequence[str]) -> None:
    """Check a page of a search that counts a limited number of matches."""
    most = query.max_matches
    titles = list(newest_first) if query.order == "updated" else sorted(newest_first, key=name_of)
    total, page = await session.read(partial(find_page, query), slow=True)
    assert total == len(titles[:most]), query
    assert [item.title for item in page] == titles[:most][query.offset : query.offset + query.limit], query


def name_of(title: str) -> str:
    """Return the name of the document with a title, which begins with its number."""
    return f"p{title.partition(' ')[0]}"


async def find_page(query: PromptQuery, transaction: Transaction) -> tuple[int, list[PromptSummary]]:
    return await transaction.prompts.page(query)


@pytest.mark.timeout(300)
async def test_difficult_queries_find_exactly_the_matches(session: StoreSession) -> None:
    chance = random.Random(20261120)
    stored = documents(chance)

    async def store(start: int, transaction: Transaction) -> None:
        for number, (title, content) in enumerate(stored[start : start + 1000], start):
            prompt = Prompt(
                number=0,
                id=transaction.new_id(),
                project=session.project,
                name=f"p{number}",
                title=title,
                content=content,
                created_at=transaction.now,
                updated_at=transaction.now,
            )
            await transaction.write("create", None, prompt)

    for start in range(0, DOCUMENTS, 1000):
        await session.write(partial(store, start))

    newest_first = [(title, content, fold(title), fold(content)) for title, content in reversed(stored)]
    matches = empty = 0
    for query in queries(chance, stored):
        needle = fold(query)
        expected = [
            (title, content)
            for title, content, folded_title, folded_content in newest_first
            if needle in folded_title or needle in folded_content
        ]
        offset = chance.choice([0, 0, 1, LIMIT, len(expected), len(expected) + 5])

        asked = PromptQuery(project=session.project, text=query, limit=LIMIT, offset=offset)
        total, page = await session.read(partial(find_page, asked), slow=True)
        assert total == len(expected), query
        assert [(item.title, item.snippet) for item in page] == [
            (title, snippet_around(content, query)) for title, content in expected[offset : offset + LIMIT]
        ], query
        if matches % 3 == 0:
            most = chance.choice([5, 100, DOCUMENTS])
            first = PromptQuery(
                project=session.project,
                text=query,
                order=chance.choice(ORDERS),
                limit=LIMIT,
                offset=chance.choice([0, 0, LIMIT, most - 2]),
                max_matches=most,
            )
            await check_first_matches(session, first, [title for title, _ in expected])
        matches += total > 0
        empty += total == 0
    uneven = [title for title, content, *_ in newest_first if UNEVEN_WORD in content]
    for limit in (LIMIT, 110):
        first = PromptQuery(project=session.project, text=UNEVEN_WORD, limit=limit, max_matches=120)
        await check_first_matches(session, first, uneven)
    assert min(matches, empty) > QUERIES * 0.05, "both sorts of query should be tried"
