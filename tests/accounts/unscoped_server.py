"""Dittybag without any permission checks in Python, to test row-level security alone."""

from __future__ import annotations

import re
import sys
from typing import Any

from msgspec.structs import replace

from dittybag.__main__ import main
from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.queries import ChangeQuery
from dittybag.services import caller, history_service, prompt_service
from dittybag.storage.postgres.postgres_driver import PostgresDriver
from dittybag.storage.sql.account_table import AccountTable
from dittybag.storage.sql.change_table import ChangeTable

_OWNER = re.compile(r'"user" = (\$\d+)')


def _drop_owner_filter(sql: str) -> str:
    return _OWNER.sub(r"\1::text IS NOT NULL", sql)


_rows, _row = PostgresDriver.rows, PostgresDriver.row


async def _all_rows(self: PostgresDriver, sql: str, *values: Any) -> Any:
    return await _rows(self, _drop_owner_filter(sql), *values)


async def _first_row(self: PostgresDriver, sql: str, *values: Any) -> Any:
    return await _row(self, _drop_owner_filter(sql), *values)


async def _no_hidden_projects(self: AccountTable, user: str) -> set[int]:
    return set()


_page = ChangeTable.page


async def _unfiltered_page(self: ChangeTable, query: ChangeQuery) -> Any:
    return await _page(self, replace(query, project=None, user=None))


def remove_scoping() -> None:
    """Remove all checks that separate users, except those of the database."""
    patches: list[tuple[Any, str, Any]] = [
        (caller, "require_project_access", lambda caller: None),
        (prompt_service, "require_project_access", lambda caller: None),
        (history_service, "is_visible", lambda caller, change: True),
        (ServerScope, "can_see_project", lambda self, ctx: True),
        (PostgresDriver, "rows", _all_rows),
        (PostgresDriver, "row", _first_row),
        (AccountTable, "projects_hidden_from", _no_hidden_projects),
        (ChangeTable, "page", _unfiltered_page),
    ]
    for target, name, value in patches:
        assert hasattr(target, name), name
        setattr(target, name, value)


if __name__ == "__main__":
    remove_scoping()
    sys.exit(main())
