"""The command line: dispatches to `serve` without loading click, and to the click commands otherwise."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dittybag import __version__


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    if arguments and arguments[0] == "serve":
        # Every MCP client starts its own process, so start-up must not pay for importing click.
        from dittybag.cli import serve

        return serve.run(arguments[1:])
    if list(arguments) == ["--version"]:
        sys.stdout.write(f"dittybag {__version__}\n")
        return 0
    from dittybag.cli.commands import main

    return main(arguments)
