"""The `satchel` command as a process, in a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.wire import ROOT


def satchel(
    home: Path,
    *arguments: str,
    status: int = 0,
    stdin: str = "",
    variables: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, which must have this exit status."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SATCHEL_")}
    done = subprocess.run(
        [sys.executable, "-m", "satchel", *arguments],
        cwd=ROOT,
        env=inherited | {"SATCHEL_HOME": str(home), "NO_COLOR": "1"} | dict(variables),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == status, done
    return done
