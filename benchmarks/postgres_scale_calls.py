"""Runs and times calls on a PostgreSQL workspace: `python -m benchmarks.postgres_scale_calls URL PROMPTS`.

Reads the name of a call from each line of its input, and writes the milliseconds that it took and a summary
of its result as JSON. `bench_scale_postgres` runs it with different versions of Dittybag.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import msgspec

from benchmarks.sample_data import COMMON_WORD, RARE_WORDS, UNCOMMON_WORD, VERY_COMMON_WORD
from dittybag.domain.accounts import Principal
from dittybag.domain.errors import StorageError
from dittybag.domain.queries import ChangeQuery, PromptQuery, ResourceQuery
from dittybag.domain.tasks import TaskFilter
from dittybag.services.caller import Caller
from dittybag.services.prompt_service import PromptAddress
from dittybag.services.search_service import RankedQuery
from dittybag.services.workspace import Workspace
from dittybag.storage.postgres.postgres_store import PostgresStore

#: The user beside the owner of the machine.
USER: Final = "ann"

#: Returns what a call found, to compare it with other versions.
Call: TypeAlias = Callable[["Calls", Caller], Awaitable[Any]]

WORDS: Final = {
    "rare": RARE_WORDS[0],
    "one in 100": UNCOMMON_WORD,
    "one in 10": COMMON_WORD,
    "one in 3": VERY_COMMON_WORD,
}

#: The number of prompts on a page of the web UI, and how many matches it counts.
_PER_PAGE: Final = 50
_MAX_MATCHES: Final = 1000


class Calls:
    """The calls of one process."""

    def __init__(self, workspace: Workspace, prompts: int) -> None:
        self.workspace = workspace
        #: The number of prompts that were built, before others were created.
        self.prompts = prompts
        self.numbers = itertools.count(1)

    async def create(self, caller: Caller) -> None:
        title = f"Created {time.time_ns()} {next(self.numbers)}"
        await self.workspace.prompts.create(caller, title=title, content="A few words", tags=("review",))

    async def get(self, caller: Caller) -> str:
        name = f"prompt-{next(self.numbers) * 7919 % self.prompts + 1}"
        return (await self.workspace.prompts.get(caller, PromptAddress(name=name))).name

    async def page(self, caller: Caller, **query: Any) -> tuple[int, list[str]]:
        wanted = PromptQuery(project=caller.project, **{"limit": _PER_PAGE, **query})
        found = await self.workspace.prompts.page(caller, wanted)
        return found.total, [item.name for item in found.prompts]

    async def resources(self, caller: Caller, **query: Any) -> tuple[int, list[str], Any]:
        wanted = ResourceQuery(project=caller.project, limit=_PER_PAGE, **query)
        found = await self.workspace.resources.page(caller, wanted)
        return found.total, [item.name for item in found.resources], found.types

    async def tasks(self, caller: Caller, offset: int = 0, **filters: Any) -> tuple[int, list[int]]:
        found = await self.workspace.tasks.listing(
            caller, TaskFilter(**filters), order="priority", limit=_PER_PAGE, offset=offset
        )
        return found.total, [task.id for task in found.tasks]

    async def board(self, caller: Caller, **filters: Any) -> list[tuple[str, int]]:
        found = await self.workspace.tasks.status_board(
            caller, TaskFilter(**filters), order="priority", limit=20
        )
        return [(str(column.key), column.total) for column in found]

    async def ranked(self, caller: Caller, text: str) -> tuple[int, list[str]]:
        found = await self.workspace.search.ranked(caller, RankedQuery(text, (), 20))
        return found.total, [hit.ref for hit in found.hits]

    async def activity(self, caller: Caller) -> int:
        query = ChangeQuery(project=caller.project, limit=_PER_PAGE)
        page = await self.workspace.history.browse(caller, query)
        return len(page.changes) + bool(await self.workspace.history.actors(caller, query))

    async def home(self, caller: Caller) -> Any:
        await self.workspace.overview.usage(caller, "somebody")
        return msgspec.structs.astuple(await self.workspace.overview.count_contents(caller))

    async def get_while(self, caller: Caller, other: Awaitable[Any]) -> list[float]:
        """Return the milliseconds of reads of a prompt while another call runs."""
        running = asyncio.ensure_future(other)
        times = []
        while not running.done():
            started = time.perf_counter()
            await self.get(caller)
            times.append((time.perf_counter() - started) * 1000)
        await running
        return times


def _page(**query: Any) -> Call:
    return lambda calls, caller: calls.page(caller, **query)


def _resources(**query: Any) -> Call:
    return lambda calls, caller: calls.resources(caller, **query)


def _ranked(word: str) -> Call:
    return lambda calls, caller: calls.ranked(caller, word)


def _calls() -> dict[str, Call]:
    most = {"max_matches": _MAX_MATCHES}
    return {
        "create": Calls.create,
        "get": Calls.get,
        **{f"search, {kind}": _page(text=word) for kind, word in WORDS.items()},
        **{f"prompts page, {kind}": _page(text=word, **most) for kind, word in WORDS.items()},
        **{f"ranked, {kind}": _ranked(word) for kind, word in WORDS.items()},
        "prompts page 1": _page(),
        "prompts page 10": _page(offset=9 * _PER_PAGE),
        "prompts page, middle": lambda calls, caller: calls.page(caller, offset=calls.prompts // 2),
        "prompts page, last": lambda calls, caller: calls.page(caller, offset=calls.prompts - _PER_PAGE),
        "prompts page by name": _page(order="name"),
        "prompts page, tag": _page(all_tags=("review",), **most),
        "by tag": _page(any_tag=("review",)),
        "by two tags": _page(any_tag=("topic-1", "topic-2")),
        "list tags": lambda calls, caller: calls.workspace.prompts.tags(caller),
        "list after a number": lambda calls, caller: calls.workspace.prompts.listing(
            caller, calls.prompts // 2, _PER_PAGE
        ),
        "resources page": _resources(),
        "resources page by size": _resources(order="size"),
        "resources page, type": _resources(mime_type="text/html"),
        "resources page, text": _resources(text="resource-77"),
        "task board": lambda calls, caller: calls.board(caller),
        "task board, one in 100": lambda calls, caller: calls.board(caller, text=UNCOMMON_WORD),
        "task list": lambda calls, caller: calls.tasks(caller),
        "task list, one in 100": lambda calls, caller: calls.tasks(caller, text=UNCOMMON_WORD),
        "task search, one in 100": lambda calls, caller: calls.workspace.tasks.search(
            caller, UNCOMMON_WORD, limit=_PER_PAGE
        ),
        "activity": Calls.activity,
        "home": Calls.home,
        "projects": lambda calls, caller: calls.workspace.projects.all(caller),
    }


CALLS: Final = _calls()
#: Calls while which others read a prompt.
WHILE: Final = ("search, one in 10", "list tags", "prompts page 1")
#: What a call returns is not the same each time.
_CHANGING: Final = ("create", "activity")


async def run_call(calls: Calls, caller: Caller, name: str) -> dict[str, Any]:
    """Run a call and describe what happened. A name that begins with `get, while` names another call."""
    other = name.removeprefix("get, while ")
    if other != name:
        return {"times": await calls.get_while(caller, CALLS[other](calls, caller))}
    started = time.perf_counter()
    try:
        found = await CALLS[name](calls, caller)
    except StorageError as error:
        # A statement took longer than is allowed.
        return {"times": [(time.perf_counter() - started) * 1000], "error": str(error)}
    milliseconds = (time.perf_counter() - started) * 1000
    summary = None if name in _CHANGING else msgspec.json.encode(found, enc_hook=str).decode()
    return {"times": [milliseconds], "found": summary}


async def serve(url: str, prompts: int) -> None:
    store = await PostgresStore.open(url, create=False)
    workspace = Workspace(store)
    owner = Caller(1, "benchmark")
    calls = Calls(workspace, prompts)
    callers = {
        "owner": owner,
        "user": msgspec.structs.replace(owner, user=USER, principal=Principal(USER, "write", "write")),
    }
    print("ready", flush=True)
    try:
        while line := await asyncio.to_thread(sys.stdin.readline):
            who, _, name = line.strip().partition(" ")
            print(msgspec.json.encode(await run_call(calls, callers[who], name)).decode(), flush=True)
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
