"""A workspace: all use cases over one store."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from satchel.domain.ports import Store
from satchel.services.caller import Caller
from satchel.services.history import History
from satchel.services.projects import Projects
from satchel.services.prompts import Prompts
from satchel.services.repeats import Repeats
from satchel.services.resources import Resources
from satchel.services.search import Search
from satchel.services.tasks import Tasks

if TYPE_CHECKING:
    from satchel.services.accounts import Accounts
    from satchel.services.overview import Overview


class Workspace:
    """One store of prompts, resources and tasks, and what may be done with it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.projects = Projects(store)
        self.prompts = Prompts(store)
        self.resources = Resources(store)
        self.tasks = Tasks(store)
        self.search = Search(store)
        self.history = History(store)
        self.repeats = Repeats(store)

    @cached_property
    def accounts(self) -> Accounts:
        """Whom it knows. Few need that: it is imported when it is used."""
        from satchel.services.accounts import Accounts

        return Accounts(self.store)

    @cached_property
    def overview(self) -> Overview:
        """What it holds at a glance. Only pages for people show that."""
        from satchel.services.overview import Overview

        return Overview(self.store)


class Desk(Struct, frozen=True):
    """Where somebody works: the workspace, and on whose behalf."""

    workspace: Workspace
    caller: Caller
