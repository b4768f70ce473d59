"""All tests: `python -m tests [options of pytest]`. Those that watch the clock run last, and alone."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

#: What pytest says if there was nothing to do.
_NOTHING: Final = 5

#: In turn: what two processes can do side by side, and what needs the machine for itself.
_PARTS: Final = (
    ("-m", "not alone", "--numprocesses", "2", "--dist", "loadfile"),
    ("-m", "alone"),
)


def main(options: list[str]) -> int:
    """Run both parts; the exit status."""
    statuses = [
        subprocess.run([sys.executable, "-m", "pytest", *part, *options], check=False).returncode
        for part in _PARTS
    ]
    if all(status == _NOTHING for status in statuses):
        return _NOTHING
    return max(status for status in statuses if status != _NOTHING)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
