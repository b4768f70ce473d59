"""Consistency checks of a SQLite workspace, independent of the code that wrote it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import msgspec

from dittybag.domain.changes import Purged
from dittybag.domain.entities import ENTITY_TYPES, Entity, Kind
from dittybag.domain.words import stems_of
from tests.storage_contract.naive_search import without_accents

#: Kind and label of an entity.
EntityKey: TypeAlias = tuple[Kind, str]

_TABLES: dict[Kind, tuple[str, str]] = {
    "project": ("projects", "id"),
    "prompt": ("prompts", "id"),
    "resource": ("resources", "id"),
    "task": ("tasks", "id"),
}


#: What the table of open tasks has instead of null.
_DEFAULTS = {"project": "", "due_date": "~"}


class SqliteAudit:
    """An open workspace file. Use it only while no server writes."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        # Closing must not run a checkpoint: the next server has to find the state that the killed one left.
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def close(self) -> None:
        self._connection.close()

    def _rows(self, sql: str) -> Iterator[dict[str, Any]]:
        cursor = self._connection.execute(sql)
        for row in cursor:
            yield dict(zip((name for name, _ in cursor.get_description()), row, strict=True))

    def stored_values(self) -> dict[EntityKey, Any]:
        """Return the values that clients write, by kind and label."""
        found: dict[EntityKey, Any] = {}
        for row in self._rows("SELECT title, content, tags FROM prompts"):
            found["prompt", row["title"]] = (row["content"], tuple(msgspec.json.decode(row["tags"])))
        for row in self._rows("SELECT id, title, notes, completed_at FROM tasks"):
            found["task", row["title"]] = (row["notes"], row["completed_at"] is not None)
        for row in self._rows("SELECT name, sha256, size, bytes FROM resources JOIN contents USING (sha256)"):
            assert sha256(row["bytes"]).hexdigest() == row["sha256"]
            assert len(row["bytes"]) == row["size"]
            found["resource", row["name"]] = row["bytes"]
        return found

    def task_ids(self) -> dict[str, int]:
        return {row["title"]: row["id"] for row in self._rows("SELECT id, title FROM tasks")}

    def check(self) -> None:
        """Check every invariant that must hold after any kill."""
        assert self._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert self._connection.execute("PRAGMA foreign_key_check").fetchall() == []
        self._check_indexes()
        self._check_word_index()
        self._check_tags()
        self._check_tasks()
        self._check_log()

    def _check_indexes(self) -> None:
        """Each index must contain exactly the trigrams of the rows."""
        texts = {
            "prompt_index": "SELECT number, title, content FROM prompts",
            "task_index": "SELECT id, title, coalesce(notes, '') FROM tasks",
            "resource_index": """SELECT number, name, coalesce(title, ''), iif(is_text, bytes, '')
                                 FROM resources JOIN contents USING (sha256)""",
        }
        for index, sql in texts.items():
            expected = {
                (trigram, number)
                for number, *parts in self._connection.execute(sql)
                for trigram in trigrams(parts, without_accents if index == "task_index" else str.casefold)
            }
            vocabulary = f"CREATE VIRTUAL TABLE temp.found USING fts5vocab(main, {index}, instance)"
            self._connection.execute(vocabulary)
            found = set(self._connection.execute("SELECT term, doc FROM temp.found"))
            self._connection.execute("DROP TABLE temp.found")
            assert found == expected, (
                f"{index}: {len(found - expected)} too many, {len(expected - found)} missing"
            )

    def _check_word_index(self) -> None:
        """The index of stems must contain exactly one row for each entity, with the words of its title."""
        rows = self._connection.execute(
            """SELECT 4 * number, title FROM prompts UNION ALL SELECT 4 * number + 1, name FROM resources
               UNION ALL SELECT 4 * id + 2, title FROM tasks"""
        )
        titles: dict[int, str] = dict(rows)
        listed = {row[0] for row in self._connection.execute("SELECT id FROM word_index_docsize")}
        assert listed == titles.keys(), f"word_index: {len(listed ^ titles.keys())} wrong rows"
        self._connection.execute(
            "CREATE VIRTUAL TABLE temp.found USING fts5vocab(main, word_index, instance)"
        )
        found = set(self._connection.execute("SELECT term, doc FROM temp.found WHERE col = 'name'"))
        self._connection.execute("DROP TABLE temp.found")
        missing = {
            (stem, row)
            for row, title in titles.items()
            for stem in stems_of(title)
            if (stem, row) not in found
        }
        assert not missing, f"word_index: {len(missing)} words are missing"

    def _check_tags(self) -> None:
        expected = self._connection.execute(
            """SELECT project, value, updated_at, number FROM prompts, json_each(prompts.tags)
               ORDER BY 1, 2, 3, 4"""
        ).fetchall()
        listed = self._connection.execute("SELECT * FROM prompt_tags ORDER BY 1, 2, 3, 4").fetchall()
        assert listed == expected
        counted = Counter((project, tag) for project, tag, _, _ in expected)
        assert set(self._connection.execute("SELECT * FROM tag_counts")) == {
            (*tag, count) for tag, count in counted.items()
        }
        projects = Counter(project for (project,) in self._connection.execute("SELECT project FROM prompts"))
        assert dict(self._connection.execute("SELECT * FROM prompt_counts")) == projects

    def _check_tasks(self) -> None:
        """The edges and the open tasks must follow from the tasks. A claimed task must be in hand."""
        tasks = list(self._rows("SELECT * FROM tasks ORDER BY id"))
        edges = {(task["parent"], task["id"], 1) for task in tasks if task["parent"] is not None}
        for task in tasks:
            edges |= {(task["id"], blocker, 0) for blocker in msgspec.json.decode(task["blocked_by"])}
        assert set(self._connection.execute("SELECT * FROM task_edges")) == edges
        open_tasks = {task["id"] for task in tasks if task["status"] not in ("done", "dropped")}
        waits = Counter(waiting for waiting, blocker, _ in edges if blocker in open_tasks)
        columns = ("id", "status", "user", "project_id", "project", "assignee", "priority", "due_date")
        expected = [
            (
                *(_DEFAULTS.get(name) if task[name] is None else task[name] for name in columns),
                waits[task["id"]],
            )
            for task in tasks
            if task["id"] in open_tasks
        ]
        assert self._connection.execute("SELECT * FROM open_tasks ORDER BY task").fetchall() == expected
        in_hand = {task["id"] for task in tasks if task["status"] == "doing"}
        assert {row[0] for row in self._connection.execute("SELECT task FROM claims")} <= in_hand

    def _check_log(self) -> None:
        """Replaying the change log must produce the rows."""
        state: dict[EntityKey, Entity | Purged] = {}
        for row in self._rows("SELECT * FROM changes ORDER BY seq"):
            kind: Kind = row["kind"]
            before, after = (_state(kind, row[side]) for side in ("before", "after"))
            key = (kind, row["entity"])
            current = state.pop(key, None)
            # A purge of old versions goes from the newest to the oldest, in several transactions.
            assert isinstance(before, Purged) or current == before, (
                f"change {row['seq']}: `before` is not the state of {key}"
            )
            if after is not None:
                state[key] = after
        assert state == self._entities()

    def _entities(self) -> dict[EntityKey, Entity]:
        found: dict[EntityKey, Entity] = {}
        for kind, (table, key) in _TABLES.items():
            for row in self._rows(f"SELECT * FROM {table}"):
                for column in ("tags", "arguments", "blocked_by", "labels", "links", "comments", "pins"):
                    if column in row:
                        row[column] = msgspec.json.decode(row[column])
                found[kind, str(row[key])] = msgspec.convert(row, ENTITY_TYPES[kind].struct)
        return found


def _state(kind: Kind, text: str | None) -> Entity | Purged | None:
    if text is None:
        return None
    if msgspec.json.decode(text).get("state") == "purged":
        return msgspec.json.decode(text, type=Purged)
    entity: Entity = msgspec.json.decode(text, type=ENTITY_TYPES[kind].struct)
    return entity


def trigrams(parts: list[str | bytes], fold: Callable[[str], str]) -> set[str]:
    """Return the trigrams of the folded texts, joined by line breaks."""
    text = fold("\n".join(part if isinstance(part, str) else part.decode() for part in parts))
    return {text[at : at + 3] for at in range(len(text) - 2)}
