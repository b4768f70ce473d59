"""Finds tasks in work that somebody claimed and whose claim is gone: nobody is given them."""

from __future__ import annotations


def unheld_tasks_query(as_json: str = "") -> str:
    """Return the query for the numbers of the tasks. `as_json`: the cast from text, where one is needed.

    The change log says whether a task was claimed: who put it in work was given it at once, or is an agent. A
    task that a person had and put in work has no claim.
    """
    before, after = f"before{as_json}", f"after{as_json}"
    return f"""
        SELECT id FROM tasks WHERE status = 'doing' AND id NOT IN (SELECT task FROM claims) AND EXISTS (
            SELECT 1 FROM changes WHERE kind = 'task' AND entity = CAST(tasks.id AS TEXT)
            AND before IS NOT NULL
            AND (interface = 'mcp' OR {before} ->> 'assignee' IS DISTINCT FROM {after} ->> 'assignee')
            AND {after} ->> 'status' = 'doing' AND {after} ->> 'assignee' = tasks.assignee
            AND substr(actor, 1, length(tasks.assignee)) = tasks.assignee)
        ORDER BY id"""
