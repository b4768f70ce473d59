"""Workspaces full of made-up prompts and tasks, always the same ones.

They are built through the product's own storage and kept in `.cache/benchmarks/store`, until the schema or
this module changes. What is measured works on copies.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import os
import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import apsw
from msgspec import Struct

from dittybag.domain.names import name_from_title
from dittybag.domain.ports import Transaction
from dittybag.domain.projects import DEFAULT_PROJECT
from dittybag.domain.prompts import Prompt
from dittybag.domain.tasks import DEFAULT_USER, ENERGIES, Task
from dittybag.storage.sqlite.migrations import load_migrations
from dittybag.storage.sqlite.store import SqliteStore

CACHE: Final = Path(__file__).resolve().parents[1] / ".cache" / "benchmarks" / "store"

#: Each of these is in so many prompts and tasks. They are made of the same syllables as all other words, so
#: that any three letters of them are frequent.
RARE_WORDS: Final = tuple(
    f"{a}{b}" for a in ("thaler", "morand", "sulten", "perind") for b in ("ing", "antion")
)
RARE: Final = 10
#: In one of a hundred, one of ten, and three of ten.
UNCOMMON_WORD: Final = "santeral"
COMMON_WORD: Final = "delarion"
VERY_COMMON_WORD: Final = "contalsed"
#: Two letters that are nowhere else, in as many prompts as a rare word; and two that are almost everywhere.
RARE_PAIR: Final = "qx"
FREQUENT_PAIR: Final = "an"

#: Tags and, of a thousand prompts, how many carry them.
TAGS: Final = {"review": 100, "draft": 100, "writing": 50, **{f"topic-{n}": 12 for n in range(100)}}
#: Projects that tasks are sorted into, from the fullest to the emptiest.
PROJECTS: Final = tuple(f"project-{n}" for n in range(20))

_WORDS: Final = 8000
_PROMPT_WORDS: Final = 66
_TITLE_WORDS: Final = 4
_NOTES_WORDS: Final = 25
_PER_TRANSACTION: Final = 1000
#: 2026-01-01, in microseconds.
_BEGINNING: Final = 1_767_225_600_000_000
_MINUTE: Final = 60_000_000

_ONSETS: Final = [*"bcdfghlmnprstvw", "st", "tr", "pr", "ch", "th", "sh", "pl", "cl", "gr"]
_NUCLEI: Final = [*"aeiou", "ea", "io", "ou", "ai"]
_CODAS: Final = [*[""] * 6, *"nrstldm", "nd", "nt", "st", "ng", "rn", "ll"]
_ENDINGS: Final = [*[""] * 4, "ing", "ed", "er", "ion", "ly", "s", "es", "able", "ment"]
_UNICODE: Final = ["Überblick", "naïve", "ÉTUDE", "Ελλάδα", "ДОКУМЕНТ", "مرحبا", "日本語", "🚀", "İstanbul"]

#: The table and the index of a bare insert: the texts, and the same index on them.
_BARE: Final = """
CREATE TABLE bare (
    number INTEGER PRIMARY KEY, id TEXT, name TEXT, title TEXT, description TEXT, content TEXT, tags TEXT
) STRICT;
CREATE VIRTUAL TABLE bare_index USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);
INSERT INTO bare_index (bare_index, rank) VALUES ('automerge', 16), ('crisismerge', 64);
CREATE TRIGGER bare_index_after_insert AFTER INSERT ON bare BEGIN
    INSERT INTO bare_index (rowid, text)
    VALUES (new.number, lower(new.title) || char(10) || lower(new.content));
END;
"""


class Draft(Struct, frozen=True):
    """A prompt before it is stored."""

    title: str
    content: str
    tags: tuple[str, ...]


class Writing:
    """An endless supply of text whose words are as unequally frequent as those of a language."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._vocabulary = _vocabulary()
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, _WORDS + 1)))
        self._written = 0

    def words(self, count: int) -> list[str]:
        return self._random.choices(self._vocabulary, cum_weights=self._weights, k=count)

    def text(self, count: int, extra: Sequence[str] = ()) -> str:
        """Sentences of about so many words, the extra ones somewhere among them."""
        words = self.words(count + self._random.randint(-count // 4, count // 4))
        if self._random.random() < 0.1:
            words += self._random.sample(_UNICODE, 2)
        for word in extra:
            words.insert(self._random.randrange(len(words)), word)
        sentences = [words[at : at + 12] for at in range(0, len(words), 12)]
        return " ".join(" ".join(sentence).capitalize() + "." for sentence in sentences)

    def title(self) -> str:
        self._written += 1
        return f"{' '.join(self.words(_TITLE_WORDS)).capitalize()} {self._written}"

    def draft(self, extra: Sequence[str] = ()) -> Draft:
        tags = tuple(tag for tag, share in TAGS.items() if self._random.random() * 1000 < share)
        return Draft(self.title(), self.text(_PROMPT_WORDS, extra), tags)

    def task(self, extra: Sequence[str] = ()) -> Task:
        choose = self._random.random
        created = _BEGINNING + self._written * _MINUTE
        return Task(
            id=0,
            user=DEFAULT_USER,
            title=self.title(),
            project=PROJECTS[int(choose() ** 2 * len(PROJECTS))] if choose() < 0.9 else None,
            priority=self._random.randint(1, 5),
            energy=self._random.choice(ENERGIES),
            notes=self.text(_NOTES_WORDS, extra) if extra or choose() < 0.7 else None,
            due_date="2026-12-01" if choose() < 0.2 else None,
            completed_at=created + _MINUTE if choose() < 0.4 else None,
            created_at=created,
            updated_at=created,
        )

    def prompt(self, project: int, id: str, extra: Sequence[str]) -> Prompt:
        draft = self.draft(extra)
        created = _BEGINNING + self._written * _MINUTE
        # Every third has been worked on later, up to a month.
        worked_on = self._random.randrange(30 * 24 * 60) * _MINUTE if self._random.random() < 0.33 else 0
        return Prompt(
            number=0,
            id=id,
            project=project,
            name=name_from_title(draft.title),
            title=draft.title,
            description=" ".join(self.words(8)) if self._random.random() < 0.5 else None,
            content=draft.content,
            tags=draft.tags,
            created_at=created,
            updated_at=created + worked_on,
        )

    def scattered(self, items: int) -> list[list[str]]:
        """For each of so many items, which of the words that are searched for it has."""
        places: list[list[str]] = [[] for _ in range(items)]
        shares = dict.fromkeys((*RARE_WORDS, RARE_PAIR), min(RARE, items))
        shares |= {UNCOMMON_WORD: items // 100, COMMON_WORD: items // 10, VERY_COMMON_WORD: items * 3 // 10}
        for word, count in shares.items():
            for place in self._random.sample(range(items), count):
                places[place].append(word)
        return places


def _vocabulary() -> list[str]:
    choose = random.Random("vocabulary").choice
    searched = (*RARE_WORDS, UNCOMMON_WORD, COMMON_WORD, VERY_COMMON_WORD, RARE_PAIR)
    found: dict[str, None] = {}
    while len(found) < _WORDS:
        # The most frequent words are the shortest ones.
        syllables = 1 if len(found) < 150 else 2 if len(found) < 3000 else 3
        word = "".join(choose(_ONSETS) + choose(_NUCLEI) + choose(_CODAS) for _ in range(syllables))
        word += choose(_ENDINGS) if syllables > 1 else ""
        if not any(other in word for other in searched):
            found[word] = None
    return list(found)


class Prepared(Struct, frozen=True):
    """The files that a run copies."""

    #: A workspace with that many prompts and as many tasks.
    workspace: Path
    #: The same file, with the table and the index of a bare insert besides.
    bare: Path


def prepare(items: int) -> Prepared:
    """Build the files, unless they are there."""
    CACHE.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256(Path(__file__).read_bytes() + repr(load_migrations()).encode()).hexdigest()[:12]
    found = Prepared(CACHE / f"workspace-{items}-{key}.db", CACHE / f"bare-{items}-{key}.db")
    for outdated in CACHE.glob(f"*-{items}-*.db*"):
        if outdated not in (found.workspace, found.bare):
            outdated.unlink()
    if not found.workspace.exists():
        unfinished = found.workspace.with_suffix(".unfinished")
        _remove(unfinished)
        asyncio.run(_fill(unfinished, items))
        unfinished.rename(found.workspace)
    if not found.bare.exists():
        unfinished = found.bare.with_suffix(".unfinished")
        _remove(unfinished)
        _add_bare(found.workspace, unfinished, items)
        unfinished.rename(found.bare)
    return found


def _remove(database: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)


async def _fill(file: Path, items: int) -> None:
    store = SqliteStore(str(file))
    writing = Writing("prompts and tasks")
    prompts, tasks = iter(writing.scattered(items)), iter(writing.scattered(items))

    async def work(transaction: Transaction) -> None:
        project = await transaction.projects.by_name(DEFAULT_PROJECT)
        assert project is not None
        for extra in itertools.islice(prompts, _PER_TRANSACTION):
            await transaction.write("create", None, writing.prompt(project.id, transaction.new_id(), extra))
        for extra in itertools.islice(tasks, _PER_TRANSACTION):
            await transaction.write("create", None, writing.task(extra))

    try:
        for done in _progress("Filling the store", items):
            await store.write(work, actor=f"benchmark, from {done} on")
    finally:
        await store.close()


def _add_bare(workspace: Path, file: Path, items: int) -> None:
    shutil.copyfile(workspace, file)
    connection = bare_connection(file)
    try:
        connection.execute(_BARE)
        for done in _progress("Filling the floor", items):
            connection.execute(
                """INSERT INTO bare SELECT number, id, name, title, description, content, tags FROM prompts
                   WHERE number > ? AND number <= ? ORDER BY number""",
                (done, done + _PER_TRANSACTION),
            )
    finally:
        connection.close()


def bare_connection(file: Path) -> apsw.Connection:
    """A connection that writes as durably as ours, with a cache of the same size."""
    connection = apsw.Connection(str(file))
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -16384"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _progress(what: str, items: int) -> Iterator[int]:
    for done in range(0, items, _PER_TRANSACTION):
        if done % (10 * _PER_TRANSACTION) == 0:
            print(f"{what}: {done:,} of {items:,} ...", file=sys.stderr, flush=True)
        yield done


@contextlib.contextmanager
def copied(file: Path, folder: Path, name: str) -> Iterator[Path]:
    """A copy to work on, on the disk before anything is measured."""
    target = folder / f"{name}.db"
    shutil.copyfile(file, target)
    descriptor = os.open(target, os.O_RDWR)
    os.fsync(descriptor)
    os.close(descriptor)
    try:
        yield target
    finally:
        _remove(target)
