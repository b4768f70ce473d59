"""Import of CSV files of prompts, in the variants that people share."""

from __future__ import annotations

from pathlib import Path

import pytest

from dittybag.domain.errors import Invalid, SourceFailed
from dittybag.domain.imports import RenamedEntity
from dittybag.exchange.csv_file import CsvSource
from tests.exchange.exchange_fixtures import import_into, rows

PROMPTS = "SELECT name, title, content, description, tags FROM prompts ORDER BY number"


async def test_the_columns_act_and_prompt_are_imported(tmp_path: Path) -> None:
    (tmp_path / "prompts.csv").write_text(
        "act,prompt,for_devs\r\n"
        '"Linux Terminal","I want you to act as a ""linux terminal"".\nReply.",TRUE\r\n'
        "\r\n"
        'Ästhet,"Prüfe, was schön ist",FALSE\r\n',
        newline="",
    )
    await import_into(tmp_path / "here.db", CsvSource(str(tmp_path / "prompts.csv")))
    assert rows(tmp_path / "here.db", PROMPTS) == [
        (
            "linux-terminal",
            "Linux Terminal",
            'I want you to act as a "linux terminal".\nReply.',
            None,
            "[]",
        ),
        ("asthet", "Ästhet", "Prüfe, was schön ist", None, "[]"),
    ]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
async def test_other_columns_are_accepted_in_any_order(tmp_path: Path, separator: str) -> None:
    lines = [
        ("Tags", "Content", "Name", "Title", "Description"),
        ("Alpha|b c", "Text", "my prompt", "My title", "Why"),
        ("", "More", "", "Only a title", ""),
    ]
    content = "\ufeff" + "".join(separator.join(line) + "\n" for line in lines)
    (tmp_path / "prompts.csv").write_text(content)
    source = CsvSource(str(tmp_path / "prompts.csv"))
    await import_into(tmp_path / "here.db", source)
    assert rows(tmp_path / "here.db", PROMPTS) == [
        ("my-prompt", "My title", "Text", "Why", '["alpha","b-c"]'),
        ("only-a-title", "Only a title", "More", None, "[]"),
    ]
    assert source.renamed == [RenamedEntity("prompt", "my prompt", "my-prompt")]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("act,prompt\nA,\nB,b\n", "line 2: Content must not be empty"),
        ("act,prompt\nA\n", "line 2: too few columns"),
        ('act,prompt\nA,"never closed\n', "unexpected end of data"),
        ("act,prompt\nA," + "x" * 3_000_000, "field larger than field limit"),
        ("act,prompt\n,text\n", "line 2: a name or a title is required"),
        ("act,prompt\nA,a\0b\n", "line 2: Content must not contain NUL characters"),
    ],
)
async def test_a_bad_line_is_reported_and_nothing_is_imported(
    tmp_path: Path, content: str, problem: str
) -> None:
    (tmp_path / "prompts.csv").write_text(content)
    with pytest.raises(Invalid) as caught:
        await import_into(tmp_path / "here.db", CsvSource(str(tmp_path / "prompts.csv")))
    assert problem in str(caught.value)
    assert rows(tmp_path / "here.db", "SELECT * FROM prompts") == []


async def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prompts.csv").write_bytes(b"act,prompt\n" + b"a,b\n" * 10_000 + b"\xff,b\n")
    with pytest.raises(SourceFailed, match="it is not UTF-8"):
        await import_into(tmp_path / "here.db", CsvSource(str(tmp_path / "prompts.csv")))
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SourceFailed, match="the first line must name the columns"):
        CsvSource(str(tmp_path / "other.csv"))
