"""A child process that backs up a database, and stops in the middle until it is killed."""

from __future__ import annotations

import signal
import sys

from dittybag.storage.sqlite.backups import back_up
from tests.storage.sqlite.scripted_process import reply


def stop(*progress: object) -> None:
    reply("copying")
    signal.pause()


if __name__ == "__main__":
    back_up(sys.argv[1], sys.argv[2], force=False, report=stop)
