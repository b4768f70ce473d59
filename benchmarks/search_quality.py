"""How good the ranked search is: questions over public collections, with the expected answers."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import apsw
import msgspec
from msgspec import Struct

from dittybag.domain.names import name_from_title
from dittybag.services.caller import Caller
from dittybag.services.search_service import RankedQuery
from dittybag.services.workspace import Workspace

DATA: Final = Path(__file__).parent / "search_data"
#: Questions that the weights of the search were chosen on, and others.
TUNED: Final = "questions.tsv"
HELD_OUT: Final = "held_out.tsv"
FIRST: Final = 5

#: Finds the names of the first ten documents for a text.
Finder: TypeAlias = Callable[[str], Awaitable[list[str]]]


class Question(Struct, frozen=True):
    """A question, and the names of the documents that answer it."""

    text: str
    expected: frozenset[str]


class CollectedDocument(Struct, frozen=True, array_like=True):
    """A document of a public collection."""

    source: str
    name: str
    text: str


class _Collections(Struct):
    documents: list[CollectedDocument]


class SearchQuality(Struct, frozen=True):
    """The results of all questions."""

    #: The share of questions with an expected document among the first five.
    found: float
    #: The mean of 1 divided by the rank of the first expected document.
    reciprocal_rank: float


def load_questions(name: str = TUNED) -> list[Question]:
    """Return the questions that were used while the search was tuned, or those that were not."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    pairs = (line.split("\t") for line in lines)
    return [Question(text, frozenset(expected.split("|"))) for expected, text in pairs]


def load_documents() -> list[CollectedDocument]:
    raw = gzip.decompress((DATA / "collections.json.gz").read_bytes())
    return msgspec.json.decode(raw, type=_Collections).documents


async def store_documents(
    workspace: Workspace, caller: Caller, documents: Sequence[CollectedDocument]
) -> dict[str, str]:
    """Store patterns as prompts and pages as resources. Returns the name of each by its reference."""

    async def store(document: CollectedDocument) -> str:
        if document.source == "fabric":
            name = name_from_title(document.name)
            await workspace.prompts.create(caller, name=name, title=document.name, content=document.text)
            return name
        uri = f"tldr://common/{document.name}"
        await workspace.resources.create(
            caller, name=document.name, uri=uri, content=document.text, mime_type="text/markdown"
        )
        return uri

    references = await asyncio.gather(*map(store, documents))
    return {ref: document.name for ref, document in zip(references, documents, strict=True)}


def ranked_finder(workspace: Workspace, caller: Caller, names: dict[str, str]) -> Finder:
    """Return a function that finds the names of the first ten documents with the ranked search."""

    async def find(text: str) -> list[str]:
        page = await workspace.search.ranked(caller, RankedQuery(text))
        return [names[hit.ref] for hit in page.hits]

    return find


def plain_finder(documents: Sequence[CollectedDocument]) -> Finder:
    """Return the baseline: FTS5 with its porter tokenizer and BM25, and a query for any of the words."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE plain USING fts5 (name, text, tokenize = 'porter unicode61')")
    rows = [(document.name, document.text) for document in documents]
    connection.executemany("INSERT INTO plain VALUES (?, ?)", rows)

    async def find(text: str) -> list[str]:
        match = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        sql = "SELECT name FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT 10"
        return [row[0] for row in connection.execute(sql, (match,))]

    return find


async def measure_quality(questions: Sequence[Question], find: Finder) -> SearchQuality:
    ranks = []
    for question in questions:
        names = await find(question.text)
        ranks.append(next((at for at, name in enumerate(names, 1) if name in question.expected), 0))
    count = len(questions)
    return SearchQuality(
        sum(0 < rank <= FIRST for rank in ranks) / count, sum(1 / rank for rank in ranks if rank) / count
    )


async def measure_overlap(
    questions: Sequence[Question],
    one: Finder,
    other: Finder,
) -> float:
    """Return the mean share of the first ten documents that two searches have in common."""
    shares = []
    for question in questions:
        found, others = set(await one(question.text)), set(await other(question.text))
        if found or others:
            shares.append(len(found & others) / max(len(found), len(others)))
    return sum(shares) / len(shares)
