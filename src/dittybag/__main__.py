"""Entry point of `python -m dittybag` and of the `dittybag` command."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Final

from dittybag import __version__

#: A short command creates fewer objects than this, and collecting them would take a twentieth of its time.
_OBJECTS_BETWEEN_COLLECTIONS: Final = 100_000


def main() -> int:
    status = _run(sys.argv[1:])
    # The process ends: the collector need not visit every object once more.
    gc.freeze()
    return status


def _run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    if arguments and arguments[0] == "serve":
        # Every MCP client starts its own process, so start-up must not pay for importing click.
        from dittybag.cli import serve

        return serve.run(arguments[1:])
    if list(arguments) == ["--version"]:
        sys.stdout.write(f"dittybag {__version__}\n")
        return 0
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    from dittybag.cli.commands import main

    return main(arguments)


if __name__ == "__main__":
    sys.exit(main())
