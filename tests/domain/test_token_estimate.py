"""The estimate of tokens is rather too high: compared with recorded counts of five public tokenizers.

The counts are those of `gpt-tokenizer` 4.0.0 (o200k, cl100k), `@anthropic-ai/tokenizer` 0.0.4 (claude),
`llama3-tokenizer-js` 1.2.0 and `mistral-tokenizer-js` 1.0.0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from dittybag.domain.token_estimate import estimate_tokens, fits_into

#: At most this many times the tokens of the tokenizer that makes the most, over all samples, and for each.
MOST_TIMES: Final = 1.4
MOST_TIMES_EACH: Final = 3


class Sample(Struct, frozen=True):
    """A text, and how many tokens each tokenizer makes of it."""

    name: str
    text: str
    counts: dict[str, int]

    @property
    def most(self) -> int:
        return max(self.counts.values())


SAMPLES: Final = msgspec.json.decode(
    Path(__file__).with_name("token_counts.json").read_bytes(), type=list[Sample]
)


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample.name for sample in SAMPLES])
def test_the_estimate_is_rather_too_high(sample: Sample) -> None:
    assert sample.most <= estimate_tokens(sample.text) <= MOST_TIMES_EACH * sample.most


def test_the_estimate_of_all_samples_is_close_enough_to_be_of_use() -> None:
    estimated = sum(estimate_tokens(sample.text) for sample in SAMPLES)
    assert estimated <= MOST_TIMES * sum(sample.most for sample in SAMPLES)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("word", 1), (" two words", 3), ("12", 2), ("\n\n", 2), ("日", 3)]
)
def test_the_estimate_of_short_texts(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text() | st.text(st.sampled_from("aAbB12_  \n\"'({é日🎉")))
def test_no_text_has_more_tokens_than_bytes(text: str) -> None:
    tokens = estimate_tokens(text)
    assert tokens <= len(text.encode())
    assert fits_into(text, tokens)
    assert not fits_into(text, tokens - 1)
