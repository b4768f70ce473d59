"""Cycles among tasks that wait for each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence


def find_cycle(edges: Mapping[int, Sequence[int]], starts: Iterable[int] | None = None) -> list[int]:
    """Return a cycle of a graph, whose first and last node are the same; empty if there is none.

    `edges`: the nodes that each node waits for. `starts`: only a cycle that one of these leads to. It takes
    no recursion: a chain may be of any length.
    """
    finished: set[int] = set()
    for start in edges if starts is None else starts:
        path: list[int] = []
        on_path: dict[int, Iterator[int]] = {}
        node: int | None = None if start in finished else start
        while node is not None:
            if node not in on_path:
                path.append(node)
                on_path[node] = iter(edges.get(node, ()))
            following = next((next_ for next_ in on_path[node] if next_ not in finished), None)
            if following is not None:
                if following in on_path:
                    return [*path[path.index(following) :], following]
                node = following
                continue
            finished.add(path.pop())
            del on_path[node]
            node = path[-1] if path else None
    return []
