"""All tables on one connection."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.storage.sql.account_table import AccountTable
from dittybag.storage.sql.change_table import ChangeTable
from dittybag.storage.sql.content_table import ContentTable
from dittybag.storage.sql.entity_rows import EntityRows
from dittybag.storage.sql.native_queries import NativeQueries
from dittybag.storage.sql.project_table import ProjectTable
from dittybag.storage.sql.prompt_table import PromptTable
from dittybag.storage.sql.resource_table import ResourceTable
from dittybag.storage.sql.session_table import SessionTable
from dittybag.storage.sql.sql_driver import SqlDriver
from dittybag.storage.sql.task_table import TaskTable

if TYPE_CHECKING:
    from dittybag.storage.sql.claim_table import ClaimTable
    from dittybag.storage.sql.edge_table import EdgeTable
    from dittybag.storage.sql.ranked_table import RankedTable


class ConnectedTables:
    """The tables, and what they use to run their queries."""

    def __init__(self, driver: SqlDriver, native: NativeQueries) -> None:
        self.driver = driver
        self.native = native
        self.rows: dict[Kind, EntityRows] = {kind: EntityRows(kind, driver) for kind in ENTITY_TYPES}
        self.contents = ContentTable(driver)
        self.projects = ProjectTable(driver, self.rows["project"], native)
        self.prompts = PromptTable(driver, self.rows["prompt"], native)
        self.resources = ResourceTable(driver, self.rows["resource"], native)
        self.tasks = TaskTable(driver, self.rows["task"], native)
        self.changes = ChangeTable(driver, native)
        self.sessions = SessionTable(driver)
        self.accounts = AccountTable(driver)

    @cached_property
    def claims(self) -> ClaimTable:
        """Claims of tasks, imported on first use because most processes use none."""
        from dittybag.storage.sql.claim_table import ClaimTable

        return ClaimTable(self.driver)

    @cached_property
    def edges(self) -> EdgeTable:
        """Edges between tasks, imported on first use because most processes use none."""
        from dittybag.storage.sql.edge_table import EdgeTable

        return EdgeTable(self.driver)

    @cached_property
    def ranked(self) -> RankedTable:
        """The ranked search, imported on first use because most processes do not search."""
        from dittybag.storage.sql.ranked_table import RankedTable

        return RankedTable(self.driver, self.rows, self.native)
