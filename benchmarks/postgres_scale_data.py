"""Large PostgreSQL workspaces with generated prompts, resources and tasks, which the database itself builds.

A few thousand texts are generated here. The database makes a prompt of each, many times over, with names and
search words of its own, through the tables of a new workspace, so all triggers run.
"""

from __future__ import annotations

import re
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]  # it has no types

from benchmarks.report_output import print_progress
from benchmarks.sample_data import (
    COMMON_WORD,
    RARE,
    RARE_WORDS,
    UNCOMMON_WORD,
    VERY_COMMON_WORD,
    TextGenerator,
)
from dittybag.domain.ranked_search import searched_texts
from dittybag.domain.stemming import stem
from dittybag.domain.tasks import DEFAULT_USER
from dittybag.storage.postgres.postgres_store import PostgresStore
from dittybag.storage.postgres.word_vectors import word_columns
from dittybag.storage.sql.entity_rows import folded_columns

#: The user beside the owner of the machine.
USER: Final = "ann"
#: The number of different texts.
TEXTS: Final = 20_000
#: There are fewer resources and tasks than prompts, by this factor.
FEWER: Final = 10
#: Search words and how many prompts one of them is in: every second, third and so on, chosen by a hash.
_WORDS: Final = {UNCOMMON_WORD: 100, COMMON_WORD: 10, VERY_COMMON_WORD: 3}
#: 2026-01-01, in microseconds.
_BEGINNING: Final = 1_767_225_600_000_000
_MINUTE: Final = 60_000_000

#: A number that is the same in every run, from 0 to 2^31.
_CHANCE: Final = "(hashint8(n) & 2147483647)"


def _added_words(items: int) -> tuple[str, str]:
    """SQL for the search words of prompt `n`, as text and as stems with positions."""
    step = max(items // RARE, 1)
    conditions = {RARE_WORDS[0]: f"n % {step} = 0"}
    conditions |= {word: f"{_CHANCE} % {share} = 1" for word, share in _WORDS.items()}
    # Position 7: once, in the content. See `0009_create_word_index.sql`.
    text = " || ".join(f"CASE WHEN {test} THEN ' {word}' ELSE '' END" for word, test in conditions.items())
    stems = " || ".join(
        f"CASE WHEN {test} THEN ' ''{stem(word)}'':7' ELSE '' END" for word, test in conditions.items()
    )
    return text, stems


def _prompts_sql(items: int) -> str:
    text, stems = _added_words(items)
    return f"""
        SET dittybag.counts = 'later';
        INSERT INTO prompts (number, id, project, name, title, description, content, tags, arguments,
                             created_at, updated_at, version, folded_title, folded_content, words, word_count)
        SELECT n + 1, md5(n::text), 1, 'prompt-' || n, 'Prompt ' || n, description, content || added, tags,
               '[]', {_BEGINNING} + n * {_MINUTE}, {_BEGINNING} + (n + n % 40000) * {_MINUTE}, 1,
               NULL, folded_content || added, (vector || stems)::tsvector, word_count
        FROM (SELECT n, description, content, tags, folded_content, vector, word_count, {text} AS added,
                     {stems} AS stems
              FROM generate_series(1::bigint, {items}) AS n JOIN texts ON texts.number = n % {TEXTS}) AS made
        ORDER BY n;
        RESET dittybag.counts;
        SELECT count_new_prompts(0);
        INSERT INTO changes (seq, batch, at, actor, action, kind, entity, project, before, after, interface)
        SELECT number, number, created_at, 'agent ' || number % 50, 'create', 'prompt', id, 1, NULL,
               json_build_object(
                   'number', number, 'id', id, 'project', project, 'name', name, 'title', title,
                   'description', description, 'content', content, 'tags', tags,
                   'arguments', arguments::json, 'created_at', created_at, 'updated_at', updated_at,
                   'version', version)::text, 'mcp'
        FROM prompts ORDER BY number;"""


def _resources_sql(items: int) -> str:
    """SQL for resources after the prompts, of which each has one of the texts as its content."""
    text, stems = _added_words(items)
    count = items // FEWER
    return f"""
        INSERT INTO contents
        SELECT encode(sha256(convert_to(content, 'UTF8')), 'hex'), convert_to(content, 'UTF8')
        FROM texts WHERE number <= {count} ON CONFLICT DO NOTHING;
        INSERT INTO resources (number, id, project, name, uri, uri_digest, title, description, mime_type,
                               is_text, is_template, sha256, size, created_at, updated_at, version,
                               folded_title, folded_content, words, word_count)
        SELECT {items} + 1 + n, md5('r' || n), 1, 'resource-' || n, 'file:///resource-' || n,
               sha256(convert_to('file:///resource-' || n, 'UTF8')), 'Resource ' || n, description,
               (ARRAY['text/plain', 'text/markdown', 'application/json', 'text/html'])[1 + {_CHANCE} % 4],
               true, false, encode(sha256(convert_to(content, 'UTF8')), 'hex'),
               octet_length(content), {_BEGINNING} + n * {_MINUTE}, {_BEGINNING} + n * {_MINUTE}, 1, NULL,
               coalesce(folded_content, lower(content)) || added, (vector || stems)::tsvector, word_count
        FROM (SELECT n, description, content, folded_content, vector, word_count, {text} AS added,
                     {stems} AS stems
              FROM generate_series(1::bigint, {count}) AS n
              JOIN texts ON texts.number = n % least({TEXTS}, {count})) AS made;"""


def _tasks_sql(items: int) -> str:
    """SQL for tasks: half of them are the owner's, a quarter the user's, a quarter those of the project."""
    text, stems = _added_words(items)
    return f"""
        INSERT INTO tasks (id, "user", title, project, priority, energy, time_estimate, notes, due_date,
                           completed_at, created_at, updated_at, version, status, project_id, words,
                           word_count)
        SELECT n, CASE WHEN n % 4 = 1 THEN '{USER}' ELSE '{DEFAULT_USER}' END, 'Task ' || n,
               CASE WHEN n % 4 = 2 THEN 'default' ELSE 'project-' || {_CHANCE} % 20 END,
               1 + {_CHANCE} % 5, (ARRAY['light', 'medium', 'deep'])[1 + {_CHANCE} % 3], '25min',
               substr(content, 1, 200) || added,
               CASE WHEN {_CHANCE} % 5 = 0 THEN '2026-12-01' END,
               CASE WHEN {_CHANCE} % 10 < 4 THEN {_BEGINNING} + (n + 1) * {_MINUTE} END,
               {_BEGINNING} + n * {_MINUTE}, {_BEGINNING} + n * {_MINUTE}, 1,
               CASE WHEN {_CHANCE} % 10 < 4 THEN 'done' ELSE 'todo' END,
               CASE WHEN n % 4 = 2 THEN 1 END, (vector || stems)::tsvector, word_count
        FROM (SELECT n, content, vector, word_count, {text} AS added, {stems} AS stems
              FROM generate_series(1::bigint, {items // FEWER}) AS n
              JOIN texts ON texts.number = n % {TEXTS}) AS made;
        UPDATE counters SET last = {items // FEWER} WHERE name = 'tasks';"""


async def build(url: str, items: int) -> None:
    """Create a workspace with a number of prompts, a tenth as many resources, and as many tasks."""
    await (await PostgresStore.open(url)).close()
    connection = await asyncpg.connect(re.sub(r"\?.*", "", url))
    try:
        schema = re.search(r"schema=(\w+)", url)
        assert schema is not None
        await connection.execute(f"SET search_path = {schema[1]}, public; SET work_mem = '64MB'")
        await connection.execute("SET maintenance_work_mem = '512MB'")
        await _load_texts(connection)
        indexes = await _drop_text_indexes(connection)
        print_progress(f"{items:,} prompts ...")
        async with connection.transaction():
            await connection.execute(_prompts_sql(items))
            await connection.execute(_resources_sql(items))
            await connection.execute(_tasks_sql(items))
            await connection.execute(f"INSERT INTO users VALUES ('{USER}', 1), ('bea', 1)")
            await connection.execute("INSERT INTO projects VALUES (2, 'closed', 1, 1, 1)")
            await connection.execute("UPDATE counters SET last = 2 WHERE name = 'projects'")
            await connection.execute("INSERT INTO members VALUES (2, 'bea', 'write')")
        print_progress("indexes ...")
        for sql in indexes:
            await connection.execute(sql)
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


async def _load_texts(connection: Any) -> None:
    generator = TextGenerator("scale")
    rows = []
    for number in range(TEXTS):
        prompt = generator.prompt(1, "", ())
        words = word_columns(searched_texts(prompt, None))
        folded = folded_columns(prompt, "prompt")["folded_content"]
        rows.append((number, prompt.description, prompt.content, list(prompt.tags), folded, *words.values()))
    await connection.execute(
        """CREATE TEMPORARY TABLE texts (
               number bigint PRIMARY KEY, description text, content text, tags text[], folded_content text,
               vector text, word_count bigint)"""
    )
    await connection.copy_records_to_table("texts", records=rows)
    await connection.execute("ANALYZE texts")


async def _drop_text_indexes(connection: Any) -> list[str]:
    """Drop the indexes of texts, because they are built faster at the end. Returns SQL that creates them."""
    rows = await connection.fetch(
        """SELECT indexname, indexdef FROM pg_indexes
           WHERE schemaname = current_schema()
                 AND (indexname LIKE '%_trigrams' OR indexname LIKE '%_words')"""
    )
    for name, _ in rows:
        await connection.execute(f"DROP INDEX {name}")
    return [row[1] for row in rows]
