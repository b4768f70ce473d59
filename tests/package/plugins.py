"""The plugins for clients as they are released: `python -m tests.package.plugins FOLDER`.

Each gets a copy of the skills, which have one source, and the marketplaces stand beside them. It runs without
installed packages.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

from tests.package.versions import ROOT

CLIENTS: Final = ("claude-code", "codex", "cursor", "gemini")
MARKETPLACES: Final = (".claude-plugin", ".agents", ".cursor-plugin")
SKILLS: Final = ROOT / "plugins" / "skills"


def build(folder: Path) -> None:
    """Write the plugins and the marketplaces into a folder."""
    for name in MARKETPLACES:
        shutil.copytree(ROOT / name, folder / name)
    for client in CLIENTS:
        target = folder / "plugins" / client
        shutil.copytree(ROOT / "plugins" / client, target)
        shutil.copytree(SKILLS, target / "skills")


if __name__ == "__main__":
    build(Path(sys.argv[1]))
