"""The command line. `serve` starts at once; everything else is loaded when it is used."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dittybag import __version__


def run(arguments: Sequence[str]) -> int:
    """Run a command; the exit status."""
    if arguments and arguments[0] == "serve":
        # Clients start it again and again: it has no time for a command line framework.
        from dittybag.cli import serve

        return serve.run(arguments[1:])
    if list(arguments) == ["--version"]:
        sys.stdout.write(f"dittybag {__version__}\n")
        return 0
    from dittybag.cli.commands import main

    return main(arguments)
