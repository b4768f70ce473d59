"""`dittybag` in a process that sees a folder on a read-only file system.

`python -m tests.storage.sqlite.read_only_server FOLDER serve ...`
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.storage.sqlite.scripted_process import unshare_mounts

INSIDE = "TEST_INSIDE_NAMESPACE"

if __name__ == "__main__":
    if INSIDE not in os.environ:
        command = [*unshare_mounts(), sys.executable, "-m", "tests.storage.sqlite.read_only_server"]
        os.execvpe(command[0], [*command, *sys.argv[1:]], {**os.environ, INSIDE: "1"})
    folder = sys.argv.pop(1)
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
    from dittybag.__main__ import main

    sys.exit(main())
