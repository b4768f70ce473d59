"""Options and variables of every release are still known, so that none is silently ignored."""

from __future__ import annotations

from pathlib import Path

from tests.cli.cli_runner import dittybag
from tests.upgrades.golden_release import golden_releases


def test_options_and_variables_of_releases_are_still_in_the_help(tmp_path: Path) -> None:
    shown = dittybag(tmp_path, "serve", "--help").stdout
    words = {word.strip(".,") for word in shown.split()}
    for release in golden_releases():
        known = release.settings()
        assert {*known.options, *known.variables} <= words, release.name
