"""Entry point of `python -m dittybag` and of the `dittybag` command."""

from __future__ import annotations

import sys


def main() -> int:
    from dittybag.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
