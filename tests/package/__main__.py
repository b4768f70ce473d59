"""Checks everything that is published, and prints a line of each validator: `python -m tests.package`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.package import bundle, registry_entry
from tests.package.distributions import build, check


def main() -> int:
    """Run all validators on newly built files. Returns the exit status."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            built = build(Path(folder))
            print(check(built), end="", flush=True)
            status = registry_entry.main()
            print(bundle.report(built.wheel), flush=True)
    except subprocess.CalledProcessError as error:
        print(f"error: {' '.join(map(str, error.cmd[:4]))} failed\n{error.stdout}", file=sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
