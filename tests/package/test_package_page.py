"""The reference page about the package is up to date."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.interop.environments import MCPB
from tests.package.bundle import pack
from tests.package.distributions import Distributions
from tests.package.package_page import PAGE, measure, page, stated_sizes
from tests.programs import skip_unless_ci

#: Small changes of the source need no new page.
TOLERANCE = 0.1


def test_the_page_lists_the_dependencies() -> None:
    written = PAGE.read_text()
    assert written == page(stated_sizes(written)), "run python -m tests.package.package_page"


def test_the_sizes_on_the_page_are_right(distributions: Distributions, tmp_path: Path) -> None:
    if not MCPB.is_installed:
        skip_unless_ci(f"needs {MCPB.title} (python -m tests.interop.environments {MCPB.name})")
    bundle = tmp_path / "dittybag.mcpb"
    pack(distributions.wheel, bundle)
    stated = stated_sizes(PAGE.read_text())
    if sys.platform != "linux":
        # Compiled dependencies have another size on other systems.
        del stated["installation"]
    measured = {name: size for name, size in measure(distributions, bundle).items() if name in stated}
    assert stated == pytest.approx(measured, rel=TOLERANCE), "run python -m tests.package.package_page"
