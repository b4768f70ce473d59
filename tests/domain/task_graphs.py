"""Graphs of tasks for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from dittybag.domain.task_graph import GraphTask, TaskGraph
from dittybag.domain.tasks import ENDED, STATUSES

#: A time, in microseconds since 1970.
NOW = 1_800_000_000_000_000


def graph_of(
    blocked_by: Mapping[int, Iterable[int]],
    parents: Mapping[int, int] = MappingProxyType({}),
    fields: Mapping[int, Mapping[str, Any]] = MappingProxyType({}),
    left_out: int = 0,
) -> TaskGraph:
    """Return a graph with these tasks and what they wait for, with `waits_for` as a store counts it."""
    tasks: dict[int, GraphTask] = {}
    is_open = {node for node in blocked_by if fields.get(node, {}).get("status") not in ENDED}
    parts: dict[int, set[int]] = {}
    for part, parent in parents.items():
        parts.setdefault(parent, set()).add(part)
    for node, blockers in blocked_by.items():
        given: dict[str, Any] = {"title": f"Task {node}", "status": "todo", "priority": 3} | dict(
            fields.get(node, {})
        )
        tasks[node] = GraphTask(
            id=node,
            blocked_by=tuple(blockers),
            parent=parents.get(node),
            waits_for=len({*blockers, *parts.get(node, ())} & is_open),
            **given,
        )
    return TaskGraph(tasks, left_out)


def large_graph(tasks: int, blockers: int) -> TaskGraph:
    """Return a graph whose tasks wait for some earlier ones each, always the same."""
    random = Random(4)
    return graph_of(
        {
            node: {random.randrange(1, node) for _ in range(blockers)} if node > 1 else ()
            for node in range(1, tasks + 1)
        }
    )


def chain(length: int) -> TaskGraph:
    return graph_of({node: [node - 1] if node > 1 else [] for node in range(1, length + 1)})


@st.composite
def graphs(draw: st.DrawFn, max_tasks: int = 7, *, cyclic: bool = False) -> TaskGraph:
    """Small graphs, also with missing blockers; with cycles only if `cyclic`."""
    count = draw(st.integers(0, max_tasks))
    # Ids are in no particular order.
    ids = draw(st.permutations(range(1, count + 1)))
    blocked_by: dict[int, set[int]] = {}
    parents: dict[int, int] = {}
    fields: dict[int, dict[str, Any]] = {}
    for position, node in enumerate(ids):
        allowed = [*(ids if cyclic else ids[:position]), 99]
        blocked_by[node] = draw(st.sets(st.sampled_from(allowed), max_size=3))
        later = ids if cyclic else ids[position + 1 :]
        is_part = draw(st.booleans())
        if later and is_part:
            parents[node] = draw(st.sampled_from(later))
        fields[node] = {"status": draw(st.sampled_from(STATUSES)), "priority": draw(st.integers(1, 5))}
    return graph_of(blocked_by, parents, fields)
