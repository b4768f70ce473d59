"""Numbering: which numbers the creations get in a workspace that is filled without its history.

The number of a prompt or resource is that of the change that created it, and its place in lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dittybag.services.exchange.import_rules import FAR


class Numbering:
    """Prompts and resources keep their numbers, if every project can be created before what is in it.

    Otherwise all are numbered anew, in their order.
    """

    def __init__(self, projects: Sequence[int], numbered: Sequence[tuple[int, int]], tasks: int) -> None:
        """`projects`: all but the default one. `numbered`: number and project of all that has a number."""
        self.numbers = [number for number, _ in numbered]
        first: dict[int, int] = {}
        for number, project in numbered:
            first[project] = min(number, first.get(project, number))
        # Those whose things come first are created first.
        order = sorted(projects, key=lambda project: first.get(project, FAR))
        taken = set(self.numbers)
        distinct = len(taken) == len(numbered) and 0 not in taken and max(taken, default=0) < FAR
        if not distinct or not self._arrange(order, taken, first, tasks):
            start = len(projects) + 2
            self.numbers = list(range(start, start + len(numbered)))
            self._arrange(order, set(self.numbers), {}, tasks)

    def _arrange(
        self, projects: Sequence[int], taken: set[int], first: Mapping[int, int], tasks: int
    ) -> bool:
        """Number what has no number of its own; whether that is possible."""
        free = _free(taken)
        self.default = next(free)
        self.projects = {project: next(free) for project in projects}
        self.tasks = [next(free) for _ in range(tasks)]
        used = [*self.projects.values(), *self.tasks[:1], *taken]
        #: The first change after the one that creates the default project.
        self.batch = min(used, default=self.default)
        in_time = all(number < first.get(project, FAR) for project, number in self.projects.items())
        return in_time and (not used or self.default < self.batch)


def _free(taken: set[int]) -> Iterator[int]:
    number = 0
    while True:
        number += 1
        if number not in taken:
            yield number
