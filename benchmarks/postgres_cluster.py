"""A durable PostgreSQL server for benchmarks, with its data on disk."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests import postgres_servers

from benchmarks.load_result import ServerFailed
from benchmarks.sample_data import CACHE

#: The test settings use little memory; these are PostgreSQL's defaults.
_SETTINGS: Final = {"shared_buffers": "128MB", "autovacuum_naptime": "60s"}


class Cluster(postgres_servers.PostgresServer):
    """A durable PostgreSQL server for benchmarks."""

    def __init__(self, programs: Path, folder: Path) -> None:
        super().__init__(programs, folder, durable=True)
        self._settings = {**self._settings, **_SETTINGS}

    @property
    def pid(self) -> int:
        """The process that all others of the server are children of."""
        assert self._process is not None
        return self._process.pid

    @property
    def version(self) -> str:
        return self.sql("SHOW server_version")[0].split()[0]

    @property
    def log_file(self) -> Path:
        """The file with the server's log."""
        return self._folder / "log"


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """Run the system's PostgreSQL, or the one bundled with the tests, with its data on disk."""
    try:
        programs = postgres_servers.installed_programs()
    except pytest.skip.Exception:
        programs = postgres_servers.bundled_programs()
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=CACHE))
    found: Cluster | None = None
    try:
        found = Cluster(programs, folder)
        found.start()
        yield found
    finally:
        if found is not None:
            found.stop()
        shutil.rmtree(folder, ignore_errors=True)


def copy_workspace(source: Path, target: str) -> None:
    """Copy a workspace."""
    command = [sys.executable, "-m", "dittybag", "copy", "--from", str(source), "--to", target]
    environment = {**os.environ, "DITTYBAG_HOME": str(source.parent)}
    result = subprocess.run(command, check=False, capture_output=True, env=environment)
    if result.returncode:
        raise ServerFailed(f"copying failed: {result.stderr[-500:].decode(errors='replace')}")
