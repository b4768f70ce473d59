"""The backends that keep the storage contract; a further one is a further entry here."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Protocol

from satchel.domain.ports import Store
from satchel.storage.sqlite.store import SqliteStore


class Backend(Protocol):
    """Somewhere to keep stores."""

    def new_place(self) -> str:
        """Where no store is yet."""
        ...

    async def open(self, place: str) -> Store:
        """The store in a place; it is made if it is not there. It may be opened any number of times."""
        ...


class SqliteFiles:
    """Stores in SQLite files of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)

    def new_place(self) -> str:
        return str(self._folder / f"{next(self._numbers)}.db")

    async def open(self, place: str) -> Store:
        return SqliteStore(place)


#: Each is given a folder of its own.
BACKENDS: dict[str, Callable[[Path], Backend]] = {"sqlite": SqliteFiles}
