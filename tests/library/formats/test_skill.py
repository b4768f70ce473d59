"""The Agent Skills format."""

from __future__ import annotations

import pytest

from dittybag.library.formats.parsed_prompt import ParsedPrompt
from tests.library.formats.parse_helpers import argument_names, parse_one, render


def test_a_skill_is_named_after_its_folder() -> None:
    content = "---\nname: pdf-tools\ndescription: Work with PDF\nlicense: x\n---\n\n# PDF\n{{ x }} $1\n"
    assert parse_one("skill", "skills/office/pdf/SKILL.md", content) == ParsedPrompt(
        key="office.pdf",
        title="pdf-tools",
        description="Work with PDF",
        text="\n# PDF\n{{ x }} $1\n",
        file="skills/office/pdf/SKILL.md",
        lines_before=5,
    )


@pytest.mark.parametrize(
    ("name", "key"),
    [("pdf", "pdf"), ("PDF tools", "PDF-tools"), ("a:b/c", "a-b-c"), ("..", "skill"), ("", "skill")],
)
def test_a_top_level_skill_is_named_by_its_front_matter(name: str, key: str) -> None:
    assert parse_one("skill", "SKILL.md", f"---\nname: {name}\n---\nText").key == key


def test_a_skill_may_take_arguments() -> None:
    assert (
        render(parse_one("skill", "s/SKILL.md", "Do $ARGUMENTS {{ x }}"), arguments="it") == "Do it {{ x }}"
    )
    assert argument_names(parse_one("skill", "s/SKILL.md", "---\nargument-hint: '[x]'\n---\nDo it")) == [
        "arguments"
    ]
    assert argument_names(parse_one("skill", "s/SKILL.md", "---\narguments: [x]\n---\nDo $x")) == ["x"]


def test_a_skill_may_be_a_template() -> None:
    parsed = parse_one("skill", "s/SKILL.md", "---\nargs:\n  - name: area\n---\nLook at {{area}}")
    assert render(parsed, area="it") == "Look at it"
