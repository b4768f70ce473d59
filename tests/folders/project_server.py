"""`dittybag` with one more profile, which has the tool `project`. Run as a module."""

from __future__ import annotations

import sys
from typing import Final

from msgspec.structs import replace

from dittybag.__main__ import main
from dittybag.contracts.profiles import PROFILES
from dittybag.contracts.project_tool import project

PROFILE: Final = "with-project"

if __name__ == "__main__":
    whole = PROFILES["all"]
    PROFILES[PROFILE] = replace(whole, name=PROFILE, tools=(*whole.tools, project))
    sys.exit(main())
