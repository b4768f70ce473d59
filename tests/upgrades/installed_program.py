"""`dittybag` as a program that was installed at the path in `INSTALLED_PROGRAM`."""

from __future__ import annotations

import os
import sys

from dittybag.__main__ import main

if __name__ == "__main__":
    sys.argv[0] = os.environ["INSTALLED_PROGRAM"]
    sys.exit(main())
