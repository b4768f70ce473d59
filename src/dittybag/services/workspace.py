"""A workspace: all use cases over one store."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from dittybag.domain.ports import Store
from dittybag.services.caller import Caller
from dittybag.services.history import History
from dittybag.services.projects import Projects
from dittybag.services.prompts import Prompts
from dittybag.services.repeats import Repeats
from dittybag.services.resources import Resources
from dittybag.services.search import Search
from dittybag.services.tasks import Tasks

if TYPE_CHECKING:
    from dittybag.services.accounts import Accounts
    from dittybag.services.overview import Overview


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
        from dittybag.services.accounts import Accounts

        return Accounts(self.store)

    @cached_property
    def overview(self) -> Overview:
        """What it holds at a glance. Only pages for people show that."""
        from dittybag.services.overview import Overview

        return Overview(self.store)


class Desk(Struct, frozen=True):
    """Where somebody works: the workspace, and on whose behalf."""

    workspace: Workspace
    caller: Caller
