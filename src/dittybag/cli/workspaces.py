"""`dittybag workspaces`: the workspaces in the data folder."""

from __future__ import annotations

import os
from typing import Any

import click

from dittybag.cli.output import format_path, format_time, json_option, print_list
from dittybag.cli.strict_options import StrictCommand
from dittybag.cli.table import Column
from dittybag.config import settings_from_process, workspace_file, workspace_names
from dittybag.domain.display import format_size
from dittybag.domain.times import iso


@click.command("workspaces", StrictCommand)
@json_option
def command() -> None:
    """List the workspaces in the data folder. Other commands open one with --workspace NAME.

    \b
    Example:
      dittybag workspaces
    """
    home = settings_from_process().home
    found = [item for name in workspace_names(home) if (item := _describe(home, name)) is not None]
    print_list(
        {"workspaces": [{**item, "modified_at": iso(item["modified_at"])} for item in found]},
        ("workspace", "size", "modified", Column("file", shrink="cut", extra=True)),
        [
            (
                item["name"],
                format_size(item["bytes"]),
                format_time(item["modified_at"]),
                format_path(item["file"]),
            )
            for item in found
        ],
        empty=(
            "No workspaces yet",
            "a command that adds something, such as dittybag prompt add, creates one",
        ),
        right=(1,),
    )


def _describe(home: str, name: str) -> dict[str, Any] | None:
    """Return the name, file, size and time of a workspace; `None` if it is not a Dittybag database."""
    from dittybag.assembly.store_factory import holds_workspace

    file = workspace_file(home, name)
    if not holds_workspace(file):
        return None
    sizes, times = [], []
    # The newest changes are in the write-ahead log.
    for path in (file, f"{file}-wal"):
        try:
            status = os.stat(path)  # noqa: PTH116  # pathlib is slow to import
        except OSError:
            continue
        sizes.append(status.st_size)
        times.append(status.st_mtime_ns // 1000)
    return {"name": name, "file": file, "bytes": sum(sizes), "modified_at": max(times, default=0)}
