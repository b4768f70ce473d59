"""The command line. Each group of commands has a module of its own, imported when it is used."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from satchel import __version__

USAGE = """\
Satchel: the prompts, documents and tasks that people and their agents share.

usage: satchel [--version] [--help]

This release holds the MCP engine. To write a server on it, see docs/guides/engine.md.
"""


def run(arguments: Sequence[str]) -> int:
    """Run a command; the exit status."""
    if list(arguments) == ["--version"]:
        sys.stdout.write(f"satchel {__version__}\n")
        return 0
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(USAGE)
        return 0
    sys.stderr.write(
        f"error: unknown command or option: {arguments[0]}\nhint: satchel --help lists what there is\n"
    )
    return 2
