"""Dittybag with a bug everywhere: nothing that is asked for is narrowed to whoever asks."""

from __future__ import annotations

import re
import sys
from typing import Any

from dittybag.__main__ import main
from dittybag.contracts.tool_specs import ServerScope
from dittybag.services import caller, history_service, prompt_service
from dittybag.storage.postgres import rows, task_table
from dittybag.storage.postgres.account_tables import AccountTables
from dittybag.storage.postgres.change_table import ChangeTable

_OWNER = re.compile(r'"user" = (\$\d+)')


def _forget_owner(sql: str) -> str:
    return _OWNER.sub(r"\1::text IS NOT NULL", sql)


async def _all_rows(connection: Any, sql: str, *values: Any) -> Any:
    return await rows.all_rows(connection, _forget_owner(sql), *values)


async def _first_row(connection: Any, sql: str, *values: Any) -> Any:
    return await rows.first_row(connection, _forget_owner(sql), *values)


async def _nothing_hidden(self: AccountTables, user: str) -> set[int]:
    return set()


_page = ChangeTable.page


async def _everybodys_page(self: ChangeTable, project: int | None, **more: Any) -> Any:
    return await _page(self, None, **{**more, "user": None})


def be_careless() -> None:
    """Take away everything that keeps people apart, but for the database itself."""
    patches: list[tuple[Any, str, Any]] = [
        (caller, "require_sight", lambda caller: None),
        (prompt_service, "require_sight", lambda caller: None),
        (history_service, "_is_seen", lambda caller, change: True),
        (ServerScope, "can_see_project", lambda self, ctx: True),
        (task_table, "all_rows", _all_rows),
        (task_table, "first_row", _first_row),
        (AccountTables, "hidden_from", _nothing_hidden),
        (ChangeTable, "page", _everybodys_page),
    ]
    for where, name, value in patches:
        assert hasattr(where, name), name
        setattr(where, name, value)


if __name__ == "__main__":
    be_careless()
    sys.exit(main())
