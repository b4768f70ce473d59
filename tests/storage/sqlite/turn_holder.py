"""A child process that takes the turn to write a SQLite file, and gives it back on a line of input."""

from __future__ import annotations

import sys
from contextlib import ExitStack

from dittybag.storage.sqlite.sqlite_connections import OpenFiles, WriteTurn
from tests.storage.sqlite.scripted_process import reply

if __name__ == "__main__":
    with ExitStack() as held:
        held.enter_context(WriteTurn(OpenFiles(sys.argv[1]).log))
        reply("held")
        sys.stdin.readline()
    reply("free")
