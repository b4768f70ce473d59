"""Generated prompts and tasks, the same in every run."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from dittybag.domain.names import name_from_title
from dittybag.domain.prompts import Prompt
from dittybag.domain.tasks import DEFAULT_USER, ENERGIES, Task

CACHE: Final = Path(__file__).resolve().parents[1] / ".cache" / "benchmarks" / "store"

#: Each of these words occurs in `RARE` prompts and tasks. They consist of the same syllables as all other
#: words, so all of their trigrams are frequent.
RARE_WORDS: Final = tuple(
    f"{a}{b}" for a in ("thaler", "morand", "sulten", "perind") for b in ("ing", "antion")
)
RARE: Final = 10
#: These occur in 1%, 10% and 30% of the prompts and tasks.
UNCOMMON_WORD: Final = "santeral"
COMMON_WORD: Final = "delarion"
VERY_COMMON_WORD: Final = "contalsed"

#: The number of prompts with each tag, per thousand.
TAGS: Final = {"review": 100, "draft": 100, "writing": 50, **{f"topic-{n}": 12 for n in range(100)}}
#: Projects of tasks, in descending order of size.
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


class Draft(Struct, frozen=True):
    """A prompt before it is stored."""

    title: str
    content: str
    tags: tuple[str, ...]


class TextGenerator:
    """Generates text with the word frequencies of a natural language."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._vocabulary = _vocabulary()
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, _WORDS + 1)))
        self._written = 0

    def words(self, count: int) -> list[str]:
        return self._random.choices(self._vocabulary, cum_weights=self._weights, k=count)

    def text(self, count: int, extra: Sequence[str] = ()) -> str:
        """Return sentences of about `count` words, with the extra words at random positions."""
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
        # A third of the prompts were updated later, within a month.
        update_delay = self._random.randrange(30 * 24 * 60) * _MINUTE if self._random.random() < 0.33 else 0
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
            updated_at=created + update_delay,
        )

    def place_search_words(self, items: int) -> list[list[str]]:
        """Return the search words of each item."""
        places: list[list[str]] = [[] for _ in range(items)]
        shares = dict.fromkeys(RARE_WORDS, min(RARE, items))
        shares |= {UNCOMMON_WORD: items // 100, COMMON_WORD: items // 10, VERY_COMMON_WORD: items * 3 // 10}
        for word, count in shares.items():
            for place in self._random.sample(range(items), count):
                places[place].append(word)
        return places


def _vocabulary() -> list[str]:
    choose = random.Random("vocabulary").choice
    searched = (*RARE_WORDS, UNCOMMON_WORD, COMMON_WORD, VERY_COMMON_WORD)
    found: dict[str, None] = {}
    while len(found) < _WORDS:
        # The most frequent words are the shortest.
        syllables = 1 if len(found) < 150 else 2 if len(found) < 3000 else 3
        word = "".join(choose(_ONSETS) + choose(_NUCLEI) + choose(_CODAS) for _ in range(syllables))
        word += choose(_ENDINGS) if syllables > 1 else ""
        if not any(other in word for other in searched):
            found[word] = None
    return list(found)


def _remove(database: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)


@contextlib.contextmanager
def temporary_copy(file: Path, folder: Path, name: str) -> Iterator[Path]:
    """Copy a file and sync the copy to disk. It is removed at the end of the block."""
    target = folder / f"{name}.db"
    shutil.copyfile(file, target)
    descriptor = os.open(target, os.O_RDWR)
    os.fsync(descriptor)
    os.close(descriptor)
    try:
        yield target
    finally:
        _remove(target)
