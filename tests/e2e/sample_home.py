"""What is in the workspace that the tests look at: the sample of `dittybag demo`."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dittybag.assembly import with_workspace
from dittybag.cli.sample_workspace import PROJECT, fill_sample, write_library
from dittybag.config import settings

__all__ = ["PROJECT", "fill"]


def fill(home: Path) -> None:
    """Put the sample into a data folder."""
    # The browser's loop is the one of this thread.
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(with_workspace, settings({"DITTYBAG_HOME": os.fspath(home)}), fill_sample).result()
    write_library(home)
