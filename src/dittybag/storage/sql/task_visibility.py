"""SQL for which tasks a user can see."""

from __future__ import annotations

from dittybag.domain.queries import TaskView
from dittybag.storage.sql.sql_driver import Bindings, SqlDriver


def visible_tasks(
    driver: SqlDriver,
    view: TaskView,
    bindings: Bindings,
    user: str,
    *,
    column: str = '"user"',
    table: str = "",
) -> str:
    """SQL for whether a task is visible to the user of a placeholder.

    `column`: the column with the user of a task. `table`: the name of the table with a dot, if it is needed.
    """
    project = f"{table}project_id"
    allowed = "true"
    if view.hidden:
        allowed = f"NOT {driver.any_of(project, bindings.add(driver.list_value(view.hidden)))}"
    is_own = f"{table}{column} = {user}"
    if view.shared:
        return f"({project} IS NULL AND {is_own} OR {project} IS NOT NULL AND {allowed})"
    return f"({is_own} AND ({project} IS NULL OR {allowed}))" if view.hidden else is_own
