"""Cycles of tasks are found in graphs of any shape, in time that grows with the number of edges."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dittybag.domain.task_cycles import find_cycle

NODES = st.integers(-4, 4)
GRAPHS = st.dictionaries(NODES, st.lists(NODES, max_size=4), max_size=8)


@given(edges=GRAPHS)
def test_a_cycle_is_found_if_and_only_if_there_is_one(edges: dict[int, list[int]]) -> None:
    cycle = find_cycle(edges)
    try:
        TopologicalSorter(edges).prepare()
    except CycleError:
        assert len(cycle) > 1
        assert cycle[0] == cycle[-1]
        assert all(after in edges[before] for before, after in pairwise(cycle))
        assert len(set(cycle)) == len(cycle) - 1
    else:
        assert cycle == []


def test_many_paths_take_no_longer_than_few() -> None:
    # There are 2 ** 1,000 paths.
    edges = {node: [node + 2 - node % 2, node + 3 - node % 2] for node in range(2_000)}
    assert find_cycle(edges) == []


def test_a_long_chain_is_no_problem() -> None:
    edges = {node: [node + 1] for node in range(200_000)}
    assert find_cycle(edges) == []
    assert len(find_cycle({**edges, 200_000: [0]})) == 200_002
