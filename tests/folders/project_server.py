"""`dittybag` with one more profile, which has the tool `project`. Run as a module.

The variable `ROOTS_SECONDS` sets how long a client may take to list its roots.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from msgspec.structs import replace

from dittybag.__main__ import main
from dittybag.contracts import connection_projects
from dittybag.contracts.profiles import PROFILES
from dittybag.contracts.project_tool import project

PROFILE: Final = "with-project"
TOOLS: Final = (*PROFILES["all"].tools, project)

if __name__ == "__main__":
    PROFILES[PROFILE] = replace(PROFILES["all"], name=PROFILE, tool_module="tests.folders.project_server")
    if (seconds := os.environ.get("ROOTS_SECONDS")) is not None:
        connection_projects.ROOTS_SECONDS = float(seconds)  # type: ignore[misc]  # final otherwise
    sys.exit(main())
