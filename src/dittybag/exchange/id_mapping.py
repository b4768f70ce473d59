"""Sequence numbers for the changes that restore a workspace without its history.

The number of a prompt or resource is the `seq` of the change that created it. Lists are ordered by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dittybag.exchange.import_rules import NUMBER_LIMIT


class IdMapping:
    """The `seq` of each create change.

    Prompts and resources keep their numbers if each project can be created before its entities. Otherwise
    all of them get new numbers, in the same order.
    """

    def __init__(self, projects: Sequence[int], numbered: Sequence[tuple[int, int]], tasks: int) -> None:
        """Assign the numbers.

        `projects`: the ids of all projects except the default project. `numbered`: the number and project of
        each prompt and resource. `tasks`: the number of tasks.
        """
        self.numbers = [number for number, _ in numbered]
        first: dict[int, int] = {}
        for number, project in numbered:
            first[project] = min(number, first.get(project, number))
        # A project must be created before its first entity.
        order = sorted(projects, key=lambda project: first.get(project, NUMBER_LIMIT))
        taken = set(self.numbers)
        distinct = len(taken) == len(numbered) and 0 not in taken and max(taken, default=0) < NUMBER_LIMIT
        if not distinct or not self._assign(order, taken, first, tasks):
            start = len(projects) + 2
            self.numbers = list(range(start, start + len(numbered)))
            self._assign(order, set(self.numbers), {}, tasks)

    def _assign(self, projects: Sequence[int], taken: set[int], first: Mapping[int, int], tasks: int) -> bool:
        """Assign a free `seq` to each project and task. Returns whether the resulting order is valid."""
        free = _unused_numbers(taken)
        self.default = next(free)
        self.projects = {project: next(free) for project in projects}
        self.tasks = [next(free) for _ in range(tasks)]
        used = [*self.projects.values(), *self.tasks[:1], *taken]
        #: The `seq` of the first change after the creation of the default project.
        self.batch = min(used, default=self.default)
        in_time = all(number < first.get(project, NUMBER_LIMIT) for project, number in self.projects.items())
        return in_time and (not used or self.default < self.batch)


def _unused_numbers(taken: set[int]) -> Iterator[int]:
    number = 0
    while True:
        number += 1
        if number not in taken:
            yield number
