"""A child process that takes and releases the write lock of a SQLite file on alternate lines of input."""

from __future__ import annotations

import sys

import apsw

from tests.storage.sqlite.scripted_process import reply

if __name__ == "__main__":
    connection = apsw.Connection(sys.argv[1])
    reply("ready")
    for _ in sys.stdin:
        connection.execute("ROLLBACK" if connection.in_transaction else "BEGIN IMMEDIATE")
        reply("locked" if connection.in_transaction else "free")
