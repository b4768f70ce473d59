"""Counts tokens with public tokenizers, whose packages carry their vocabularies."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.interop.environments import NODE, TOKENIZERS

_PROGRAM = Path(__file__).with_name("tokenizers.mjs")


def count_tokens(texts: Sequence[str]) -> list[dict[str, int]]:
    """Return the number of tokens of each text, by tokenizer."""
    lines = b"\n".join(map(msgspec.json.encode, texts))
    counts = [msgspec.json.decode(line) for line in _run(lines).splitlines()]
    assert len(counts) == len(texts)
    return counts


def read_vocabulary() -> list[str]:
    """Return the pieces of the smallest vocabulary."""
    pieces: Any = msgspec.json.decode(_run(b"", "vocabulary"))
    return [piece for piece in pieces if isinstance(piece, str)]


def _run(standard_input: bytes, *arguments: str) -> bytes:
    command = [str(NODE), str(_PROGRAM), str(TOKENIZERS.home), *arguments]
    return subprocess.run(command, input=standard_input, stdout=subprocess.PIPE, check=True).stdout
