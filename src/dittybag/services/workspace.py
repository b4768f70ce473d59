"""A workspace: all use cases over one store."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from dittybag.domain.ports import Store
from dittybag.services.caller import Caller
from dittybag.services.history_service import HistoryService
from dittybag.services.idempotency_service import IdempotencyService
from dittybag.services.project_service import ProjectService
from dittybag.services.prompt_service import PromptService
from dittybag.services.resource_service import ResourceService
from dittybag.services.search_service import SearchService
from dittybag.services.task_service import TaskService

if TYPE_CHECKING:
    from dittybag.services.account_service import AccountService
    from dittybag.services.project_overview import OverviewService


class Workspace:
    """One store of prompts, resources and tasks, and what may be done with it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.projects = ProjectService(store)
        self.prompts = PromptService(store)
        self.resources = ResourceService(store)
        self.tasks = TaskService(store)
        self.search = SearchService(store)
        self.history = HistoryService(store)
        self.idempotency = IdempotencyService(store)

    @cached_property
    def accounts(self) -> AccountService:
        """Whom it knows. Few need that: it is imported when it is used."""
        from dittybag.services.account_service import AccountService

        return AccountService(self.store)

    @cached_property
    def overview(self) -> OverviewService:
        """What it holds at a glance. Only pages for people show that."""
        from dittybag.services.project_overview import OverviewService

        return OverviewService(self.store)


class WorkspaceSession(Struct, frozen=True):
    """Where somebody works: the workspace, and on whose behalf."""

    workspace: Workspace
    caller: Caller
