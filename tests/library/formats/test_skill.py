"""Agent Skills."""

from __future__ import annotations

import pytest

from dittybag.library.formats import ParsedPrompt
from tests.library.formats.rendering import names, only, rendered


def test_a_skill_is_called_by_its_folder() -> None:
    content = "---\nname: pdf-tools\ndescription: Work with PDF\nlicense: x\n---\n\n# PDF\n{{ x }} $1\n"
    assert only("skill", "skills/office/pdf/SKILL.md", content) == ParsedPrompt(
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
def test_a_skill_that_is_the_library_is_called_by_its_name(name: str, key: str) -> None:
    assert only("skill", "SKILL.md", f"---\nname: {name}\n---\nText").key == key


def test_a_skill_may_take_arguments() -> None:
    assert rendered(only("skill", "s/SKILL.md", "Do $ARGUMENTS {{ x }}"), arguments="it") == "Do it {{ x }}"
    assert names(only("skill", "s/SKILL.md", "---\nargument-hint: '[x]'\n---\nDo it")) == ["arguments"]
    assert names(only("skill", "s/SKILL.md", "---\narguments: [x]\n---\nDo $x")) == ["x"]


def test_a_skill_may_be_a_template() -> None:
    draft = only("skill", "s/SKILL.md", "---\nargs:\n  - name: area\n---\nLook at {{area}}")
    assert rendered(draft, area="it") == "Look at it"
