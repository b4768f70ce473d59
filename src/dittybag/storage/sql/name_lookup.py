"""Names that start with a text, for shell completion: few statements, on a connection of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from dittybag.domain.prompts import Argument
from dittybag.domain.tasks import ENDED
from dittybag.storage.sql.sql_driver import Bindings, Row, SqlDriver

#: A name and what to say about it.
NameAbout: TypeAlias = tuple[str, str]

#: Sorts after every text that starts with the text before it.
_LAST: Final = "\U0010ffff"
#: Actors are those of this many of the newest changes: changes have no index for them.
_RECENT_CHANGES: Final = 5_000
#: Titles and labels are those of this many of the newest open tasks.
_RECENT_TASKS: Final = 5_000
_ENDED: Final = ", ".join(f"'{status}'" for status in sorted(ENDED))
_RECENT: Final = f"(SELECT task FROM open_tasks ORDER BY task DESC LIMIT {_RECENT_TASKS}) AS recent"
_VISIBLE: Final = '(tasks.project_id IS NOT NULL OR tasks."user" = $1)'


class NameLookup:
    """Looks names up. All of its results are visible to the owner of the machine."""

    def __init__(self, driver: SqlDriver, limit: int) -> None:
        self._driver = driver
        self._limit = limit

    async def project(self, name: str) -> int | None:
        """Return the id of a project."""
        found: int | None = await self._driver.value("SELECT id FROM projects WHERE name = $1", name)
        return found

    async def is_project(self, id: int, created_at: int) -> bool:
        """Whether a project exists that was created at this time."""
        sql = "SELECT 1 FROM projects WHERE id = $1 AND created_at = $2"
        return await self._driver.value(sql, id, created_at) is not None

    async def projects(self, prefix: str) -> list[NameAbout]:
        return _without_about(await self._starting("SELECT name FROM projects WHERE", "name", prefix))

    async def prompts(self, project: int, prefix: str) -> list[NameAbout]:
        rows = await self._starting(
            "SELECT name, title FROM prompts WHERE project = $1 AND", "name", prefix, project
        )
        return [(name, title if title != name else "") for name, title in rows]

    async def prompt_arguments(self, project: int, reference: str) -> tuple[Argument, ...]:
        """Return the arguments of a prompt, by its name, id or title; none if there is no such prompt."""
        for column in ("name", "id", "title"):
            sql = f"SELECT arguments FROM prompts WHERE project = $1 AND {column} = $2"
            found = await self._driver.value(sql, project, reference.lower() if column == "id" else reference)
            if found is not None:
                return msgspec.json.decode(found, type=tuple[Argument, ...])
        return ()

    async def tags(self, project: int, prefix: str) -> list[NameAbout]:
        rows = await self._starting(
            "SELECT tag, count FROM tag_counts WHERE project = $1 AND", "tag", prefix, project
        )
        return [(tag, f"{count} prompt{'' if count == 1 else 's'}") for tag, count in rows]

    async def resources(self, project: int, prefix: str) -> list[NameAbout]:
        """Return resources by their names, or by their URIs if the text is the start of one."""
        column = "uri" if ":" in prefix else "name"
        select = f"SELECT {column}, coalesce(title, mime_type) FROM resources WHERE project = $1 AND"
        return [(name, about) for name, about in await self._starting(select, column, prefix, project)]

    async def users(self, prefix: str) -> list[NameAbout]:
        return _without_about(await self._starting("SELECT name FROM users WHERE", "name", prefix))

    async def actors(self, prefix: str) -> list[NameAbout]:
        recent = f"(SELECT actor FROM changes ORDER BY seq DESC LIMIT {_RECENT_CHANGES}) AS recent"
        return _without_about(
            await self._starting(f"SELECT DISTINCT actor FROM {recent} WHERE", "actor", prefix)
        )

    async def labels(self, user: str, prefix: str) -> list[NameAbout]:
        sql = f"SELECT DISTINCT labels FROM {_RECENT} JOIN tasks ON id = recent.task WHERE {_VISIBLE}"
        rows = await self._driver.rows(sql, user)
        found = {label for row in rows for label in self._driver.read_list(row[0])}
        return [(label, "") for label in sorted(found) if label.startswith(prefix)][: self._limit]

    async def tasks(self, user: str, prefix: str, *, ended: bool | None) -> list[NameAbout]:
        """Return the numbers of tasks with their titles, newest first.

        `ended`: only tasks that are done or dropped, or only others.
        """
        condition = _VISIBLE
        if ended is not None:
            condition += f" AND tasks.status {'' if ended else 'NOT'} IN ({_ENDED})"
        if not prefix:
            source = f"{_RECENT} JOIN tasks ON id = recent.task" if ended is False else "tasks"
            sql = f"SELECT id, title FROM {source} WHERE {condition} ORDER BY id DESC LIMIT $2"
            rows = await self._driver.rows(sql, user, self._limit)
            return [(str(number), title) for number, title in rows]
        found: list[NameAbout] = []
        # One range at a time, because SQLite would scan all tasks for several.
        sql = f"SELECT id, title FROM tasks WHERE {condition} AND id BETWEEN $2 AND $3 ORDER BY id LIMIT $4"
        last = await self._driver.value("SELECT max(id) FROM tasks") or 0
        for low, high in _ranges(prefix, last):
            rows = await self._driver.rows(sql, user, low, high, self._limit - len(found))
            found += [(str(number), title) for number, title in rows]
        return found

    async def task_titles(self, user: str, prefix: str) -> list[NameAbout]:
        """Return the titles of open tasks that start with a text, in capital or small letters."""
        sql = f"""SELECT title, id FROM {_RECENT} JOIN tasks ON id = recent.task
                  WHERE {_VISIBLE} AND lower(substr(title, 1, $2)) = lower($3) ORDER BY id DESC LIMIT $4"""
        rows = await self._driver.rows(sql, user, len(prefix), prefix, self._limit)
        return [(title, f"task {number}") for title, number in rows]

    async def _starting(self, select: str, column: str, prefix: str, *values: int) -> Sequence[Row]:
        """Run a query for the rows in whose column the text starts with a prefix, in its order."""
        bindings = Bindings(*values)
        sql = f"{select} {column} >= {bindings.add(prefix)} AND {column} <= {bindings.add(prefix + _LAST)}"
        return await self._driver.rows(
            f"{sql} ORDER BY {column} {bindings.page(self._limit)}", *bindings.values
        )


def _without_about(rows: Iterable[Row]) -> list[NameAbout]:
    return [(row[0], "") for row in rows]


def _ranges(prefix: str, last: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the numbers up to the last one that start with these digits."""
    if not (prefix.isascii() and prefix.isdigit()) or prefix.startswith("0"):
        return
    low, high = int(prefix), int(prefix)
    while low <= last:
        yield low, high
        low, high = low * 10, high * 10 + 9
