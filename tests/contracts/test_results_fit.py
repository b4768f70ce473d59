"""Results fit: no result exceeds its limit, and following the offsets returns every item exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.contracts.agent_calls import AgentCalls
from tests.contracts.contract_replay import ServerUnderTest
from tests.contracts.large_store import RandomCalls, fill
from tests.repetitions import SEED, repetitions

pytestmark = pytest.mark.timeout(repetitions(120, 5400))

ITEMS = repetitions(1_000, 100_000)
CALLS = repetitions(250, 10_000)


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentCalls]:
    folder: Path = tmp_path_factory.mktemp("large")
    fill(folder / "dittybag.db", ITEMS, Random(SEED))
    with ServerUnderTest(folder, "agent") as server:
        yield AgentCalls(server)


def follow(agent: AgentCalls, tool: str, name: str, cursor: str, **arguments: Any) -> list[str]:
    """Return the references of all rows of a list, following the offsets."""
    refs: list[str] = []
    position: dict[str, int] = {}
    while True:
        page = agent.data(tool, **arguments, **position)
        refs += [row["ref"] for row in page[name]]
        following = page.get(f"next_{cursor}")
        assert ("more" in page) is (following is not None)
        if following is None:
            return refs
        position = {cursor: following}


def test_following_the_offsets_returns_every_task_once(agent: AgentCalls) -> None:
    tasks = [f"task:{number}" for number in range(1, ITEMS * 2 // 5 + 1)]
    for order in ("priority", "due", "newest"):
        # More than fit into one result.
        listed = follow(agent, "task_list", "tasks", "offset", order=order, limit=200)
        assert len(listed) == len(set(listed))
        assert sorted(listed) == sorted(tasks)


def test_following_the_numbers_returns_every_change_once(agent: AgentCalls) -> None:
    changes = follow(agent, "history", "changes", "before", limit=100)
    assert changes == [f"change:{seq}" for seq in range(ITEMS + 1, 0, -1)]
    prompts = follow(agent, "history", "changes", "before", limit=100, kind="prompt")
    assert len(prompts) == len(set(prompts)) == ITEMS * 2 // 5


def test_following_the_offsets_returns_every_character_once(agent: AgentCalls) -> None:
    for number in range(3, 300, 5):
        ref = f"task:{number}"
        assert agent.read_text(ref, max_tokens=1000) == agent.read_text(ref, max_tokens=100_000)


def test_following_the_offsets_returns_every_hit_once(agent: AgentCalls) -> None:
    for query in ("naïve", "日本語 bank"):
        hits = follow(agent, "search", "hits", "offset", query=query, limit=100)
        assert len(hits) == len(set(hits)) == agent.data("search", query=query)["total"] > 50


def test_random_calls_never_exceed_their_limits(agent: AgentCalls) -> None:
    # The limit of each call is checked by `AgentCalls.call`.
    failed = 0
    for tool, arguments in islice(RandomCalls(Random(SEED + 1), ITEMS), CALLS):
        failed += agent.call(tool, **arguments)["isError"]
    # The calls are neither all valid nor all invalid.
    assert CALLS * 0.2 < failed < CALLS * 0.8
