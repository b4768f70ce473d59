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
    allowed = _allowed(driver, view, bindings, project)
    is_own = f"{table}{column} = {user}"
    if view.shared:
        return f"({project} IS NULL AND {is_own} OR {project} IS NOT NULL AND {allowed})"
    return f"({is_own} AND ({project} IS NULL OR {allowed}))" if view.hidden else is_own


def visible_source(
    driver: SqlDriver, view: TaskView, bindings: Bindings, user: str, *, column: str = '"user"'
) -> tuple[str, str]:
    """SQL for the tasks that are visible to the user of a placeholder: a source and a condition.

    For queries that may read many tasks, which the source helps to find by indexes.
    """
    if not view.shared:
        return "tasks", visible_tasks(driver, view, bindings, user, column=column)
    own = f"project_id IS NULL AND {column} = {user}"
    shared = f"project_id IS NOT NULL AND {_allowed(driver, view, bindings, 'project_id')}"
    return driver.rows_with_either("tasks", own, shared)


def _allowed(driver: SqlDriver, view: TaskView, bindings: Bindings, project: str) -> str:
    """SQL for whether a project is not hidden."""
    if not view.hidden:
        return "true"
    return f"NOT {driver.any_of(project, bindings.add(driver.list_value(view.hidden)))}"
