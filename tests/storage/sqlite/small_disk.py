"""A child process that fills the disk under a store: a private mount of one megabyte.

With `--file-size`, it limits the size of files instead, which needs no mount.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
from pathlib import Path

from dittybag.domain.errors import DittybagError, StorageError
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from dittybag.storage.sqlite.sqlite_store import SqliteStore
from tests.storage.sqlite.scripted_process import reply

DISK_BYTES = 1024 * 1024
TEXT = "x" * 20_000


def fill(folder: Path) -> None:
    """Fill the disk completely."""
    with (folder / "filler").open("wb", buffering=0) as file:
        for size in (65536, 512, 1):
            try:
                while file.write(b"\0" * size):
                    pass
            except OSError:
                continue


def free_space(folder: Path) -> None:
    (folder / "filler").unlink()


def limit_files(folder: Path) -> None:
    """Keep the files of this process from growing."""
    longest = max(file.stat().st_size for file in folder.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (longest, resource.RLIM_INFINITY))


def lift_limit(folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


async def run(folder: Path, *, by_size: bool) -> None:
    fill_disk, free_disk = (limit_files, lift_limit) if by_size else (fill, free_space)
    path = str(folder / "store.db")
    workspace = Workspace(SqliteStore(path))
    caller = Caller((await workspace.projects.find("default")).id, "tester")
    kept: list[str] = []
    errors: list[str] = []

    async def add(name: str) -> None:
        try:
            await workspace.prompts.create(caller, name=name, content=TEXT)
            kept.append(name)
        except DittybagError as error:
            errors.append(type(error).__name__)

    async def names() -> list[str]:
        return [item.name for item in await workspace.prompts.listing(caller, 0, 1000)]

    for number in range(3):
        await add(f"before-{number}")
    fill_disk(folder)
    for number in range(3):
        await add(f"alone-{number}")
    alone = len(errors)
    await asyncio.gather(*(add(f"together-{number}") for number in range(30)))
    read_when_full = await names()
    free_disk(folder)
    refused_so_far = len(errors)
    await add("after")
    await workspace.store.close()

    workspace = Workspace(SqliteStore(path))
    found = await names()
    await workspace.store.close()
    reply(
        {
            "errors": sorted(set(errors)),
            "refused_alone": alone,
            "refused": refused_so_far,
            "refused_after": len(errors) - refused_so_far,
            "kept": sorted(kept),
            "read_when_full": sorted([*read_when_full, "after"]),
            "found": sorted(found),
        }
    )


async def start_on_full(folder: Path) -> None:
    """Open a new file on a full disk and report the outcome."""
    fill(folder)
    try:
        await SqliteStore(str(folder / "new.db")).close()
        reply("ok")
    except StorageError as error:
        reply(type(error).__name__)


def main(folder: Path, *options: str) -> None:
    by_size = "--file-size" in options
    if not by_size:
        size = f"size={DISK_BYTES}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", os.fspath(folder)], check=True)
    asyncio.run(start_on_full(folder) if "--start" in options else run(folder, by_size=by_size))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
