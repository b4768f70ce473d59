"""A process that purges what its parent tells it, and reports each purge when it is finished."""

from __future__ import annotations

import sys

from dittybag.protocol.lazy_asyncio import asyncio  # isort: skip  # first: it imports asyncio with placeholders

import msgspec

from dittybag.assembly.store_factory import open_store
from dittybag.services.caller import Caller
from dittybag.services.purge_service import Selection
from dittybag.services.workspace import Workspace


async def main(database: str) -> None:
    workspace = Workspace(await open_store(database))
    # An earlier process may have been killed.
    await workspace.purges.finish()
    print("ready", flush=True)
    for line in sys.stdin:
        selection = msgspec.json.decode(line, type=Selection)
        await workspace.purges.run(Caller(1, "purger"), selection)
        print("purged", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
