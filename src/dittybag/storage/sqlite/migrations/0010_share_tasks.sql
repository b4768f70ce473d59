-- Tasks that a team works on: their status, what they wait for, and who works on them, see docs/decisions/0028.
ALTER TABLE tasks ADD COLUMN status     TEXT    NOT NULL DEFAULT 'todo';
ALTER TABLE tasks ADD COLUMN project_id INTEGER REFERENCES projects (id);
ALTER TABLE tasks ADD COLUMN blocked_by TEXT    NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN parent     INTEGER;
ALTER TABLE tasks ADD COLUMN assignee   TEXT;
ALTER TABLE tasks ADD COLUMN labels     TEXT    NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN links      TEXT    NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN comments   TEXT    NOT NULL DEFAULT '[]';
UPDATE tasks SET status = 'done' WHERE completed_at IS NOT NULL;

DROP INDEX tasks_in_order;
DROP INDEX tasks_by_project;
CREATE INDEX tasks_in_order ON tasks (user, priority DESC, id, completed_at, status);
CREATE INDEX tasks_by_project ON tasks (user, project, priority DESC, id, completed_at, status);
CREATE INDEX shared_tasks ON tasks (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX shared_tasks_by_user ON tasks (user) WHERE project_id IS NOT NULL;

-- The projects that have members, and are therefore visible only to them. A table on PostgreSQL.
CREATE VIEW restricted_projects AS SELECT DISTINCT project FROM members;

-- Which task waits for which, from `blocked_by` and, with `part` set, for each part of a task. Maintained by triggers.
CREATE TABLE task_edges (
    task    INTEGER NOT NULL,
    blocker INTEGER NOT NULL,
    part    INTEGER NOT NULL,
    PRIMARY KEY (task, blocker, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_edges_by_blocker ON task_edges (blocker, task);

-- The tasks that are neither done nor dropped, each with the number of those that it waits for. Maintained by triggers.
CREATE TABLE open_tasks (
    task       INTEGER PRIMARY KEY,
    status     TEXT    NOT NULL,
    user       TEXT    NOT NULL,
    project_id INTEGER,
    project    TEXT    NOT NULL,
    assignee   TEXT,
    priority   INTEGER NOT NULL,
    due        TEXT    NOT NULL,
    waits_for  INTEGER NOT NULL
) STRICT;
-- The ready tasks in the order in which they are claimed: of a user alone, shared ones, and those of a project.
CREATE INDEX ready_tasks ON open_tasks (user, coalesce(assignee, ''), priority DESC, due, task)
    WHERE status = 'todo' AND waits_for = 0 AND project_id IS NULL;
CREATE INDEX ready_shared_tasks ON open_tasks (coalesce(assignee, ''), priority DESC, due, task)
    WHERE status = 'todo' AND waits_for = 0 AND project_id IS NOT NULL;
CREATE INDEX ready_tasks_by_project ON open_tasks (project, coalesce(assignee, ''), priority DESC, due, task)
    WHERE status = 'todo' AND waits_for = 0 AND project_id IS NOT NULL;
CREATE INDEX tasks_in_work ON open_tasks (priority DESC, due, task) WHERE status = 'doing';

-- The labels of open tasks. Maintained by triggers.
CREATE TABLE open_labels (
    label TEXT    NOT NULL,
    task  INTEGER NOT NULL,
    PRIMARY KEY (label, task)
) STRICT, WITHOUT ROWID;

-- Who holds a task and until when. `fence` is the `seq` of the change by which it was claimed. Not in the change log:
-- every call of the holder renews the lease.
CREATE TABLE claims (
    task       INTEGER PRIMARY KEY,
    fence      INTEGER NOT NULL,
    holder     TEXT    NOT NULL,
    connection TEXT    NOT NULL,
    claimed_at INTEGER NOT NULL,
    lease      INTEGER NOT NULL,
    until      INTEGER NOT NULL
) STRICT;
CREATE INDEX claims_by_connection ON claims (connection);
CREATE INDEX claims_by_end ON claims (until);

CREATE TRIGGER open_tasks_after_insert AFTER INSERT ON tasks BEGIN
    INSERT OR IGNORE INTO task_edges SELECT new.id, value, 0 FROM json_each(new.blocked_by);
    INSERT INTO task_edges SELECT new.parent, new.id, 1 WHERE new.parent IS NOT NULL;
    INSERT INTO open_tasks
    SELECT new.id, new.status, new.user, new.project_id, coalesce(new.project, ''), new.assignee, new.priority,
           coalesce(new.due_date, '~'),
           (SELECT count(*) FROM task_edges JOIN open_tasks ON open_tasks.task = blocker WHERE task_edges.task = new.id)
    WHERE new.status NOT IN ('done', 'dropped');
    UPDATE open_tasks SET waits_for = waits_for
        + (SELECT count(*) FROM task_edges WHERE task_edges.task = open_tasks.task AND blocker = new.id)
    WHERE new.status NOT IN ('done', 'dropped') AND task IN (SELECT task FROM task_edges WHERE blocker = new.id);
END;

CREATE TRIGGER open_tasks_after_delete AFTER DELETE ON tasks BEGIN
    UPDATE open_tasks SET waits_for = waits_for
        - (SELECT count(*) FROM task_edges WHERE task_edges.task = open_tasks.task AND blocker = old.id)
    WHERE old.status NOT IN ('done', 'dropped') AND task IN (SELECT task FROM task_edges WHERE blocker = old.id);
    DELETE FROM open_tasks WHERE task = old.id;
    DELETE FROM task_edges WHERE task = old.id AND part = 0;
    DELETE FROM task_edges WHERE blocker = old.id AND part = 1;
    DELETE FROM claims WHERE task = old.id;
END;

-- What the task waits for has changed.
CREATE TRIGGER task_edges_after_update AFTER UPDATE ON tasks
WHEN old.blocked_by <> new.blocked_by OR old.parent IS NOT new.parent BEGIN
    UPDATE open_tasks SET waits_for = waits_for
        - (SELECT count(*) FROM task_edges WHERE task_edges.task = open_tasks.task AND blocker = old.id)
    WHERE old.status NOT IN ('done', 'dropped') AND task IN (SELECT task FROM task_edges WHERE blocker = old.id);
    DELETE FROM open_tasks WHERE task = old.id;
    DELETE FROM task_edges WHERE task = old.id AND part = 0;
    DELETE FROM task_edges WHERE blocker = old.id AND part = 1;
    INSERT OR IGNORE INTO task_edges SELECT new.id, value, 0 FROM json_each(new.blocked_by);
    INSERT INTO task_edges SELECT new.parent, new.id, 1 WHERE new.parent IS NOT NULL;
    INSERT INTO open_tasks
    SELECT new.id, new.status, new.user, new.project_id, coalesce(new.project, ''), new.assignee, new.priority,
           coalesce(new.due_date, '~'),
           (SELECT count(*) FROM task_edges JOIN open_tasks ON open_tasks.task = blocker WHERE task_edges.task = new.id)
    WHERE new.status NOT IN ('done', 'dropped');
    UPDATE open_tasks SET waits_for = waits_for
        + (SELECT count(*) FROM task_edges WHERE task_edges.task = open_tasks.task AND blocker = new.id)
    WHERE new.status NOT IN ('done', 'dropped') AND task IN (SELECT task FROM task_edges WHERE blocker = new.id);
END;

CREATE TRIGGER open_tasks_after_update AFTER UPDATE ON tasks
WHEN old.blocked_by = new.blocked_by AND old.parent IS new.parent
     AND (old.status, old.user, old.project_id, old.project, old.assignee, old.priority, old.due_date) IS NOT
         (new.status, new.user, new.project_id, new.project, new.assignee, new.priority, new.due_date) BEGIN
    UPDATE open_tasks SET waits_for = waits_for
        - (SELECT count(*) FROM task_edges WHERE task_edges.task = open_tasks.task AND blocker = old.id)
    WHERE old.status NOT IN ('done', 'dropped') AND new.status IN ('done', 'dropped') AND task IN (SELECT task FROM task_edges WHERE blocker = old.id);
    DELETE FROM open_tasks WHERE task = old.id AND new.status IN ('done', 'dropped');
    UPDATE open_tasks SET status = new.status, user = new.user, project_id = new.project_id,
        project = coalesce(new.project, ''), assignee = new.assignee, priority = new.priority,
        due = coalesce(new.due_date, '~')
    WHERE task = new.id;
    INSERT INTO open_tasks
    SELECT new.id, new.status, new.user, new.project_id, coalesce(new.project, ''), new.assignee, new.priority,
           coalesce(new.due_date, '~'),
           (SELECT count(*) FROM task_edges JOIN open_tasks ON open_tasks.task = blocker WHERE task_edges.task = new.id)
    WHERE old.status IN ('done', 'dropped') AND new.status NOT IN ('done', 'dropped');
    UPDATE open_tasks SET waits_for = waits_for
        + (SELECT count(*) FROM task_edges WHERE task_edges.task = open_tasks.task AND blocker = new.id)
    WHERE old.status IN ('done', 'dropped') AND new.status NOT IN ('done', 'dropped') AND task IN (SELECT task FROM task_edges WHERE blocker = new.id);
END;

CREATE TRIGGER open_labels_after_insert AFTER INSERT ON tasks
WHEN new.labels <> '[]' AND new.status NOT IN ('done', 'dropped') BEGIN
    INSERT OR IGNORE INTO open_labels SELECT value, new.id FROM json_each(new.labels);
END;

CREATE TRIGGER open_labels_after_delete AFTER DELETE ON tasks WHEN old.labels <> '[]' BEGIN
    DELETE FROM open_labels WHERE label IN (SELECT value FROM json_each(old.labels)) AND task = old.id;
END;

CREATE TRIGGER open_labels_after_update AFTER UPDATE ON tasks
WHEN old.labels <> new.labels
     OR old.labels <> '[]' AND (old.status IN ('done', 'dropped')) <> (new.status IN ('done', 'dropped')) BEGIN
    DELETE FROM open_labels WHERE label IN (SELECT value FROM json_each(old.labels)) AND task = old.id;
    INSERT OR IGNORE INTO open_labels SELECT value, new.id FROM json_each(new.labels)
    WHERE new.status NOT IN ('done', 'dropped');
END;

-- A change of the status or of the assignee takes a task away from its holder.
CREATE TRIGGER claims_after_update AFTER UPDATE ON tasks
WHEN new.status <> 'doing' OR old.assignee IS NOT new.assignee BEGIN
    DELETE FROM claims WHERE task = old.id;
END;

INSERT INTO open_tasks
SELECT id, status, user, NULL, coalesce(project, ''), NULL, priority, coalesce(due_date, '~'), 0
FROM tasks WHERE status <> 'done';
