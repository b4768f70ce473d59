"""A workspace: all use cases over one store."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from dittybag.domain.ports import Store
from dittybag.services.caller import Caller
from dittybag.services.history_service import History
from dittybag.services.idempotency_service import Repeats
from dittybag.services.project_service import Projects
from dittybag.services.prompt_service import Prompts
from dittybag.services.resource_service import Resources
from dittybag.services.search_service import Search
from dittybag.services.task_service import Tasks

if TYPE_CHECKING:
    from dittybag.services.account_service import Accounts
    from dittybag.services.project_overview import Overview


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
        from dittybag.services.account_service import Accounts

        return Accounts(self.store)

    @cached_property
    def overview(self) -> Overview:
        """What it holds at a glance. Only pages for people show that."""
        from dittybag.services.project_overview import Overview

        return Overview(self.store)


class Desk(Struct, frozen=True):
    """Where somebody works: the workspace, and on whose behalf."""

    workspace: Workspace
    caller: Caller
