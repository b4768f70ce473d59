"""A data folder with the sample workspace of `dittybag demo`."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dittybag.assembly.workspace_session import with_workspace
from dittybag.cli.sample_workspace import PROJECT, fill_sample, write_library
from dittybag.config import environment_with_home, settings

__all__ = ["PROJECT", "fill_home"]


def fill_home(home: Path) -> None:
    """Write the sample workspace and its library to a data folder."""
    # Playwright already runs an event loop in this thread.
    with ThreadPoolExecutor(1) as executor:
        executor.submit(
            with_workspace, settings(environment_with_home(os.fspath(home))), fill_sample
        ).result()
    write_library(home)
