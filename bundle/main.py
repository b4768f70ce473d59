"""Starts Dittybag for a desktop client that has installed the bundle."""

from __future__ import annotations

import sys

from dittybag.__main__ import main

if __name__ == "__main__":
    # A client may run this file without the arguments of the manifest.
    sys.argv[1:] = sys.argv[1:] or ["serve", "--project", "auto", "--profile", "agent"]
    sys.exit(main())
