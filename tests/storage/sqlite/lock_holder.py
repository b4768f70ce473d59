"""Holds the write lock of a SQLite file from the first line it is sent to the next."""

from __future__ import annotations

import sys

import apsw

from tests.storage.sqlite.children import reply

if __name__ == "__main__":
    connection = apsw.Connection(sys.argv[1])
    reply("ready")
    for _ in sys.stdin:
        connection.execute("ROLLBACK" if connection.in_transaction else "BEGIN IMMEDIATE")
        reply("locked" if connection.in_transaction else "free")
