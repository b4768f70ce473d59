"""Search finds exactly what a naive case-insensitive comparison of all texts finds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from dittybag.domain.prompts import Prompt
from dittybag.domain.queries import PromptQuery, TaskQuery
from dittybag.domain.tasks import Task
from tests.repetitions import repetitions
from tests.storage_contract.naive_search import contains_words
from tests.storage_contract.store_session import StoreSession, open_session

#: Letters with unusual case mappings, and characters and words with a meaning in query languages.
ODDITIES = [
    *"ßẞsSİiIıςσΣſKkÅåŉǰﬀﬁΐᾳᏸᲀꭰႠⅧΩ",
    *"%_\\'\"*-^()[]{}:;+~!?#@&|=<>,./ \t\n\r\x01\x7f\u00a0\u2028\ufeff\ufffd\uffff\U0010ffff",
    *[
        "SS",
        "ss",
        "FI",
        "fi",
        "i\u0307",
        "e\u0301",
        "É",
        "👩‍👩‍👧",
        "שלום",
        "漢字",
        "NOT",
        "AND",
        "NEAR(",
        "abc",
        "ABC",
    ],
]
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXT = st.lists(
    st.one_of(st.sampled_from(ODDITIES), st.sampled_from("abAB "), CHARACTERS), min_size=1, max_size=24
).map("".join)
LINE = TEXT.map(lambda text: "".join(c for c in text if c.isprintable() or c == "\uffff")).filter(
    lambda line: bool(line.strip())
)
CASES = st.sampled_from([str, str.upper, str.lower, str.title, str.swapcase, str.casefold])

#: Hypothesis needs time to shrink a failing example.
pytestmark = pytest.mark.timeout(600)

#: Numbers for unique names, so that examples do not interfere.
numbers = count(1)

searching = settings(
    max_examples=repetitions(30, 500),
    deadline=None,
    # One store for all examples: each has its own project or user.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Query(Struct, frozen=True):
    """A query: random text, or a part of a stored text with other case."""

    text: str
    of: int
    start: int
    length: int
    recase: Any

    def resolve(self, texts: list[str]) -> str:
        if not texts or self.of < 0:
            return self.text
        text = texts[self.of % len(texts)]
        start = self.start % max(len(text), 1)
        piece: str = self.recase(text[start : start + self.length])
        return piece or self.text


QUERIES = st.lists(
    st.builds(
        Query,
        TEXT | st.sampled_from(ODDITIES),
        st.integers(-1, 20),
        st.integers(0, 60),
        st.sampled_from([1, 1, 2, 2, 3, 4, 7, 60]),
        CASES,
    ),
    min_size=1,
    max_size=8,
)

#: The operation, the index of the entity, and the texts to use.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "create", "update", "update", "delete", "undo"]),
        st.integers(0, 20),
        LINE,
        TEXT,
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=10,
)


def resolve_queries(
    queries: list[Query], texts: list[str], steps: list[tuple[str, int, str, str, int]]
) -> Iterator[str]:
    """Return the resolved queries, and all current and former texts."""
    for query in queries:
        yield query.resolve(texts)
    for _, _, line, text, _ in steps:
        yield line
        yield text


def contains(query: str, *texts: str | None) -> bool:
    """Return whether any text contains the query, by naive comparison."""
    return any(query.casefold() in text.casefold() for text in texts if text is not None)


async def undo_newest(session: StoreSession) -> None:
    newest = await session.newest_change()
    if newest.kind != "project":
        await session.undo(newest.seq)


@searching
@given(steps=STEPS, queries=QUERIES)
@example([("create", 0, "Straße", "x", 0)], [Query("STRASSE", -1, 0, 0, str), Query("SSE", -1, 0, 0, str)])
@example([("create", 0, "x", "İstanbul", 0)], [Query("i\u0307stanbul", -1, 0, 0, str)])
@example([("create", 0, "x", "ΟΔΥΣΣΕΥΣ", 0)], [Query("οδυσσευς", -1, 0, 0, str)])
async def test_prompts_are_found_by_title_and_content(
    session: StoreSession, steps: list[tuple[str, int, str, str, int]], queries: list[Query]
) -> None:
    here = await open_session(session.store, f"project {next(numbers)}")

    async def stored() -> list[Prompt]:
        prompts = await here.read(lambda transaction: transaction.prompts.in_project(here.project))
        return sorted(prompts, key=lambda prompt: (-prompt.updated_at, -prompt.number))

    for action, which, line, text, part in steps:
        prompts = await stored()
        free = line[:200] not in [prompt.title for prompt in prompts]
        name = prompts[which % len(prompts)].name if prompts else ""
        if action == "create" and free:
            await here.prompt(f"p{next(numbers)}", text, title=line[:200])
        elif action == "update" and prompts:
            change = {"title": line[:200]} if part == 0 and free else {"content": text}
            await here.change_prompt(name, **({"tags": ("t",)} if part == 3 else change))
        elif action == "delete" and prompts:
            await here.delete_prompt(name)
        elif action == "undo":
            await undo_newest(here)

    prompts = await stored()
    texts = [text for prompt in prompts for text in (prompt.title, prompt.content)]
    for query in resolve_queries(queries, texts, steps):
        expected = [prompt for prompt in prompts if contains(query, prompt.title, prompt.content)]
        page = await here.workspace.prompts.page(
            here.caller, PromptQuery(project=here.caller.project, text=query, limit=100, offset=0)
        )
        assert [item.id for item in page.prompts] == [prompt.id for prompt in expected], query
        assert page.total == len(expected)
        for item, prompt in zip(page.prompts, expected, strict=True):
            if contains(query, prompt.content) and len(query.casefold()) <= 60:
                assert contains(query, item.snippet), (query, item.snippet)
        for offset in range(len(expected) + 2):
            part_of = await here.workspace.prompts.page(
                here.caller, PromptQuery(project=here.caller.project, text=query, limit=1, offset=offset)
            )
            assert (part_of.prompts, part_of.total) == (page.prompts[offset : offset + 1], len(expected))


@searching
@given(steps=STEPS, queries=QUERIES)
async def test_tasks_are_found_by_title_and_notes(
    session: StoreSession, steps: list[tuple[str, int, str, str, int]], queries: list[Query]
) -> None:
    here = await open_session(session.store, user=f"user {next(numbers)}")

    async def stored() -> list[Task]:
        return await here.workspace.tasks.page(here.caller, TaskQuery(user=here.caller.user, limit=100))

    for action, which, line, text, part in steps:
        tasks = await stored()
        target = tasks[which % len(tasks)].id if tasks else 0
        if action == "create":
            await here.task(line, notes=text if part else "", priority=part + 1)
        elif action == "update" and tasks:
            changes: list[dict[str, Any]] = [{"title": line}, {"notes": text}, {"notes": ""}, {"priority": 5}]
            await here.workspace.tasks.update(here.caller, target, **changes[part])
        elif action == "delete" and tasks:
            await here.workspace.tasks.delete(here.caller, target)
        elif action == "undo" and tasks:
            await here.workspace.tasks.complete(here.caller, target)

    tasks = await stored()
    texts = [text for task in tasks for text in (task.title, task.notes or "")]
    for query in resolve_queries(queries, texts, steps):
        for title, notes in ((True, True), (True, False), (False, True)):
            expected = [
                task
                for task in tasks
                if contains_words(query, task.title if title else None, task.notes if notes else None)
            ]
            for limit in (None, 1, 100):
                assert await here.workspace.tasks.search(
                    here.caller, query, title=title, notes=notes, limit=limit
                ) == (len(expected), expected[:limit]), query


@pytest.mark.parametrize("length", [1, 2, 3, 4, 999, 1000])
async def test_long_and_short_queries_match_in_a_long_text(session: StoreSession, length: int) -> None:
    needle = "".join(chr(0x4E00 + number) for number in range(length))
    await session.prompt("hit", "x" * 50_000 + needle + "x" * 50_000)
    await session.prompt("miss", "x" * 50_000 + needle[:-1] + "!" + needle[-1] + "x")
    page = await session.workspace.prompts.page(
        session.caller, PromptQuery(project=session.caller.project, text=needle, limit=10, offset=0)
    )
    expected = ["miss", "hit"] if length == 1 else ["hit"]
    assert [item.name for item in page.prompts] == expected
    assert needle[:100] in page.prompts[-1].snippet


async def test_an_empty_query_finds_everything(session: StoreSession) -> None:
    for number in range(3):
        await session.prompt(f"p{number}")
        await session.resource(f"r{number}")
        await session.task(f"t{number}")
    page = await session.workspace.prompts.page(
        session.caller, PromptQuery(project=session.caller.project, text="", limit=10, offset=0)
    )
    assert ([item.name for item in page.prompts], page.total) == (["p2", "p1", "p0"], 3)
    total, tasks = await session.workspace.tasks.search(session.caller, "", limit=2)
    assert (total, [task.title for task in tasks]) == (3, ["t0", "t1"])
