"""The estimate of tokens is never below what a real tokenizer counts."""

from __future__ import annotations

import random
import re
import string
from functools import cache
from typing import Final

import pytest

from dittybag.domain.token_estimate import estimate_tokens
from dittybag.domain.token_pieces import SINGLE_LETTERS
from tests.interop.environments import ROOT
from tests.repetitions import SEED, repetitions
from tests.tokens.tokenizer_process import count_tokens

TEXTS: Final = repetitions(1_000, 20_000)
LENGTHS: Final = (1, 3, 10, 60, 300, 1500)
#: At most this many times as many tokens as the tokenizer that makes the most, over all documents.
MOST_TIMES: Final = 1.6
#: Words without spaces between them that a tokenizer cuts into many short pieces, and letters that one
#: divides because of those beside them.
HARD_WORDS: Final = (
    *("metadatametadatametadata", " htthtthtt", "whitewhite", " Javasubset", "execexec"),
    *("아와", "资치资치", "규치도소도소아와", " 造线や주간원传线"),
)


@cache
def documents() -> list[str]:
    """Return texts as people write them: guides, code, questions and answers."""
    paths = [
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "src").rglob("*.py"))[::20],
        *sorted((ROOT / "benchmarks" / "search_data").rglob("*.md"))[::5],
    ]
    return [path.read_text(encoding="utf-8") for path in paths]


@cache
def words() -> list[str]:
    return sorted({word for text in documents() for word in re.findall("[A-Za-z]+", text)})


def some_text(chance: random.Random) -> str:
    """Return a piece of a document, or a text that is hard on tokenizers."""
    length = chance.choice(LENGTHS)
    if chance.random() < 0.4:
        document = chance.choice(documents())
        start = chance.randrange(len(document))
        return document[start : start + length]
    alphabets = (
        string.printable,
        string.ascii_lowercase,
        string.ascii_letters,
        string.hexdigits,
        string.whitespace,
        chance.choice(string.printable),
        SINGLE_LETTERS,
        SINGLE_LETTERS + " \n" * 100,
        "".join(chr(chance.choice((0x80, 0x900, 0x4E00, 0xAC00, 0x1F300)) + n) for n in range(500)),
        words(),
        [f"{word} " for word in words()],
        [chance.choice(words())],
    )
    alphabet = chance.choice(alphabets)
    return "".join(chance.choice(alphabet) for _ in range(length))


def joined_words(chance: random.Random) -> str:
    """Return words without spaces between them, where tokenizers find other pieces than in each of them."""
    chosen = [chance.choice(words()) for _ in range(chance.randrange(2, 5))]
    return chance.choice(("", " ")) + "".join(chance.choice((chosen, chosen[:1] * len(chosen))))


def test_no_tokenizer_counts_more_than_the_estimate() -> None:
    chance = random.Random(SEED)
    texts = [some_text(chance) for _ in range(TEXTS)]
    texts += [*HARD_WORDS, *(joined_words(chance) for _ in range(TEXTS))]
    too_low = [
        (text[:80], estimate_tokens(text), counts)
        for text, counts in zip(texts, count_tokens(texts), strict=True)
        if estimate_tokens(text) < max(counts.values())
    ]
    assert too_low == []


def test_the_estimate_of_documents_is_close_enough_to_be_of_use() -> None:
    counts = count_tokens(documents())
    most = max(sum(count[name] for count in counts) for name in counts[0])
    assert sum(map(estimate_tokens, documents())) <= MOST_TIMES * most


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("word", 1), (" word", 1), ("two words", 2), ("12", 2), ("\n\n", 2), ("日", 2), ("🏴", 5)],
)
def test_the_estimate_of_short_texts(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens
