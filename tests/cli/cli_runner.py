"""Runs `dittybag` commands as processes with a separate data folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from tests.forked_processes import ForkedProcess, run


def dittybag(
    home: Path,
    *arguments: str,
    status: int = 0,
    stdin: str = "",
    variables: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """Run a command and check its exit status."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DITTYBAG_")}
    own = {"DITTYBAG_HOME": str(home), "DITTYBAG_AUTO_BACKUP": "off", "NO_COLOR": "1"}
    environment = inherited | own | dict(variables)
    result = run("dittybag", *arguments, stdin=stdin, env=environment)
    assert result.returncode == status, result
    return result


def output_bytes(home: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """Return the bytes that a command prints."""
    pipe = subprocess.PIPE
    environment = {**os.environ, "DITTYBAG_HOME": str(home)}
    with ForkedProcess("dittybag", *arguments, stdin=pipe, stdout=pipe, env=environment) as process:
        output: bytes = process.communicate(stdin, timeout=30)[0]
    assert process.returncode == 0
    return output


def data(result: subprocess.CompletedProcess[str]) -> Any:
    """Return the data that a command printed with --json."""
    envelope = msgspec.json.decode(result.stdout)
    assert list(envelope) == ["ok", "data"]
    assert envelope["ok"] is True
    return envelope["data"]


def failure(result: subprocess.CompletedProcess[str]) -> Any:
    """Return the error that a command reported with --json."""
    envelope = msgspec.json.decode(result.stderr)
    assert list(envelope) == ["ok", "error"]
    assert envelope["ok"] is False
    assert list(envelope["error"]) == ["code", "message", "hints"]
    return envelope["error"]
