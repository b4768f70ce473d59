"""Every known bug can be planted: its edits fit the source."""

from __future__ import annotations

import pytest

from tests.stdio_server_process import ROOT
from tests.torture.planted_bugs import BUGS, Bug


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_known_bug_can_be_planted(bug: Bug) -> None:
    texts: dict[str, str] = {}
    for path, old, new in bug.edits:
        text = texts.setdefault(path, (ROOT / "src" / "dittybag" / path).read_text())
        assert text.count(old) == 1, (path, old)
        texts[path] = text.replace(old, new)
    assert all((ROOT / test.partition("::")[0]).exists() for test in bug.tests)
