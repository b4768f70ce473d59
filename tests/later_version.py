"""A later version of Dittybag: a copy of this one with more migrations, in SQL and in Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import dittybag
from dittybag.storage.sql.migration_files import NEWEST_SCHEMA

ADDED: Final = 2
LATER_SCHEMA: Final = NEWEST_SCHEMA + ADDED

_SQL: Final = "CREATE TABLE title_lengths (task {integer} PRIMARY KEY, length {integer} NOT NULL);"

#: With KILL_AT set, it ends the process after this many tasks.
_PYTHON: Final = """
import os, signal

async def migrate(driver):
    kill_at = int(os.environ.get("KILL_AT", 0))
    for done, (number, title) in enumerate(await driver.rows("SELECT id, title FROM tasks ORDER BY id"), 1):
        await driver.run("INSERT INTO title_lengths (task, length) VALUES ($1, $2)", number, len(title))
        if done == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
"""


class LaterVersion:
    """The copy, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        package = folder / "dittybag"
        without_caches = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(dittybag.__file__).parent, package, ignore=without_caches)
        for backend, integer in (("sqlite", "INTEGER"), ("postgres", "bigint")):
            migrations = package / "storage" / backend / "migrations"
            first, second = (f"{NEWEST_SCHEMA + number:04d}" for number in (1, 2))
            (migrations / f"{first}_create_title_lengths.sql").write_text(_SQL.format(integer=integer))
            (migrations / f"{second}_fill_title_lengths.py").write_text(_PYTHON)
        constant = package / "storage" / "sql" / "migration_files.py"
        old = f"NEWEST_SCHEMA: Final = {NEWEST_SCHEMA}\n"
        text = constant.read_text()
        assert old in text
        constant.write_text(text.replace(old, f"NEWEST_SCHEMA: Final = {LATER_SCHEMA}\n"))

    def run(self, home: Path, *arguments: str, status: int = 0, **variables: str) -> str:
        """Run a command of this version, check its exit status, and return its output."""
        own = {"DITTYBAG_HOME": str(home), "DITTYBAG_AUTO_BACKUP": "off", "NO_COLOR": "1"}
        ended = subprocess.run(
            [sys.executable, "-B", "-m", "dittybag", *arguments],
            env={**os.environ, **own, **variables, "PYTHONPATH": str(self._folder)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == status, ended
        return ended.stdout
