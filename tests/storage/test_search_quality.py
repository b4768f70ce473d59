"""The ranked search over public collections: what it finds, and that both databases find the same."""

from __future__ import annotations

from pathlib import Path

from benchmarks import search_quality
from dittybag.domain.ports import Store
from dittybag.storage.postgres.postgres_store import PostgresStore
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.postgres_servers import PostgresServer
from tests.storage_contract.store_session import open_session

#: One question in this many is asked. `make bench` asks all.
STEP = 3
#: This many of the documents that answer no question are stored.
OTHERS = 250


async def test_most_questions_are_answered_and_both_databases_agree(
    tmp_path: Path, shared_postgres: PostgresServer
) -> None:
    questions = search_quality.load_questions()[::STEP]
    expected = {name for question in questions for name in question.expected}
    everything = search_quality.load_documents()
    others = [document for document in everything if document.name not in expected]
    documents = [document for document in everything if document.name in expected] + others[:OTHERS]

    async def finder(store: Store) -> search_quality.Finder:
        session = await open_session(store)
        names = await search_quality.store_documents(session.workspace, session.caller, documents)
        return search_quality.ranked_finder(session.workspace, session.caller, names)

    sqlite = SqliteStore(str(tmp_path / "store.db"))
    postgres = await PostgresStore.open(shared_postgres.socket_url(schema="search_quality"))
    try:
        one, other = await finder(sqlite), await finder(postgres)
        found = await search_quality.measure_quality(questions, one)
        plain = await search_quality.measure_quality(questions, search_quality.plain_finder(documents))
        assert found.found >= 0.85
        assert found.found >= plain.found
        assert found.reciprocal_rank >= plain.reciprocal_rank
        assert await search_quality.measure_overlap(questions, one, other) >= 0.9
    finally:
        await sqlite.close()
        await postgres.close()
