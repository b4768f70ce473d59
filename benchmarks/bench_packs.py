"""Context packs: whether the evidence for a question is in its pack, and how long a pack takes.

`python -m benchmarks.bench_packs [--items 100000] [--database postgresql://...]`
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from benchmarks.sample_data import TextGenerator
from benchmarks.scale_data import build_workspace
from benchmarks.search_quality import load_documents, load_questions, store_documents
from dittybag.assembly.store_factory import open_store
from dittybag.domain.queries import PackRequest
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace

_BUDGET: Final = 4_000
_ITEMS: Final = 10_000
_PACKS: Final = 300
_PER_CALL: Final = 100


async def _measure_evidence(folder: Path) -> str:
    """Ask all questions in a store with other items of the same words."""
    documents = load_documents()
    questions = load_questions()
    workspace = Workspace(await open_store(str(folder / "evidence.db")))
    caller = Caller((await workspace.projects.find("default")).id, "benchmark")
    await store_documents(workspace, caller, documents)
    words = sorted({word for document in documents for word in re.findall("[a-z]{4,}", document.text)})
    chance = random.Random(1)
    for start in range(len(documents), _ITEMS, _PER_CALL):
        numbers = range(start, min(start + _PER_CALL, _ITEMS))
        texts = [" ".join(chance.choices(words, k=chance.randrange(20, 200))) for _ in numbers]
        created = (
            workspace.prompts.create(caller, name=f"filler-{number}", content=text)
            for number, text in zip(numbers, texts, strict=True)
        )
        await asyncio.gather(*created)
    found = 0
    for question in questions:
        pack = await workspace.packs.make(caller, PackRequest(query=question.text, budget=_BUDGET))
        heads = "\n".join(line.lower() for line in pack.text.splitlines() if line.startswith("## Found"))
        found += any(_is_named(name, heads) for name in question.expected)
    await workspace.store.close()
    share = f"{found} of {len(questions)} questions, {100 * found / len(questions):.1f}%"
    return f"evidence in a pack of {_BUDGET:,} tokens among {_ITEMS:,} items: {share}"


def _is_named(name: str, heads: str) -> bool:
    found = re.search(rf"(?:/|: | ){re.escape(name.lower())}(?=[: ]|$)", heads, re.MULTILINE)
    return found is not None


async def _measure_speed(database: str, items: int) -> str:
    workspace = Workspace(await open_store(database, create=False))
    caller = Caller((await workspace.projects.find("default")).id, "agent")
    chance = random.Random(2)
    generator = TextGenerator("queries")
    times = []
    for _ in range(_PACKS):
        query = " ".join(generator.words(chance.randint(1, 5)))
        request = PackRequest(query=query, budget=chance.choice((1_500, 4_000)))
        began = perf_counter()
        await workspace.packs.make(caller, request)
        times.append(1000 * (perf_counter() - began))
    await workspace.store.close()
    times.sort()
    return (
        f"a pack among {items:,} items: median {times[_PACKS // 2]:.1f} ms, "
        f"p95 {times[_PACKS * 95 // 100]:.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--database", help="a filled database (default: a new SQLite file)")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        database = options.database
        if database is None:
            print(asyncio.run(_measure_evidence(folder)), flush=True)
            database = str(folder / "large.db")
            build_workspace(Path(database), options.items)
        print(asyncio.run(_measure_speed(database, options.items)))


if __name__ == "__main__":
    main()
