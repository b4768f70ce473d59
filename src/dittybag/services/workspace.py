"""A workspace: all services on one store."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from dittybag.domain.ports import Store, TemplateSyntax
from dittybag.services.caller import Caller
from dittybag.services.history_service import HistoryService
from dittybag.services.project_service import ProjectService
from dittybag.services.prompt_service import PromptService
from dittybag.services.resource_service import ResourceService
from dittybag.services.search_service import SearchService
from dittybag.services.task_service import TaskService

if TYPE_CHECKING:
    from dittybag.services.account_service import AccountService
    from dittybag.services.administration_service import AdministrationService
    from dittybag.services.change_batches import BatchService
    from dittybag.services.pack_service import PackService
    from dittybag.services.pin_service import PinService
    from dittybag.services.project_overview import OverviewService
    from dittybag.services.purge_service import PurgeService
    from dittybag.services.task_queue import TaskQueueService
    from dittybag.services.task_waiting import TaskWaiting


class Workspace:
    """A store and the services that use it."""

    def __init__(self, store: Store, syntax: TemplateSyntax | None = None) -> None:
        """`syntax`: refuses templates that cannot be parsed when they are saved."""
        self.store = store
        self.projects = ProjectService(store)
        self.prompts = PromptService(store, syntax)
        self.resources = ResourceService(store, syntax)
        self.tasks = TaskService(store)
        self.search = SearchService(store)
        self.history = HistoryService(store)

    @cached_property
    def task_queue(self) -> TaskQueueService:
        """The queue of ready tasks, imported on first use because most processes claim none."""
        from dittybag.services.task_queue import TaskQueueService

        return TaskQueueService(self.store)

    @cached_property
    def task_waiting(self) -> TaskWaiting:
        """Waits for ready tasks, imported on first use because few processes wait."""
        from dittybag.services.task_waiting import TaskWaiting

        return TaskWaiting(self.store, self.task_queue)

    @cached_property
    def accounts(self) -> AccountService:
        """The account service, imported on first use because few commands need it."""
        from dittybag.services.account_service import AccountService

        return AccountService(self.store)

    @cached_property
    def administration(self) -> AdministrationService:
        """Accounts and projects on behalf of a caller, imported on first use: only the web UI needs it."""
        from dittybag.services.administration_service import AdministrationService

        return AdministrationService(self.accounts, self.projects, self.history)

    @cached_property
    def purges(self) -> PurgeService:
        """The purge service, imported on first use because it is rarely needed."""
        from dittybag.services.purge_service import PurgeService

        return PurgeService(self.store)

    @cached_property
    def overview(self) -> OverviewService:
        """The overview service, imported on first use because only the web UI needs it."""
        from dittybag.services.project_overview import OverviewService

        return OverviewService(self.store)

    @cached_property
    def packs(self) -> PackService:
        """Context packs, imported on first use because most processes make none."""
        from dittybag.services.pack_service import PackService

        return PackService(self.store, self.search)

    @cached_property
    def pins(self) -> PinService:
        """The pins of projects, imported on first use because few commands need them."""
        from dittybag.services.pin_service import PinService

        return PinService(self.store)

    @cached_property
    def batches(self) -> BatchService:
        """The batches of the change log, imported on first use because only the web UI lists them."""
        from dittybag.services.change_batches import BatchService

        return BatchService(self.store)


class WorkspaceSession(Struct, frozen=True):
    """A workspace and the caller who uses it."""

    workspace: Workspace
    caller: Caller
