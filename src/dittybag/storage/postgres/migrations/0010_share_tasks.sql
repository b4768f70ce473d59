-- Tasks that a team works on: their status, what they wait for, and who works on them, see docs/decisions/0028.
ALTER TABLE tasks
    ADD COLUMN status     text   COLLATE "C" NOT NULL DEFAULT 'todo',
    ADD COLUMN project_id bigint REFERENCES projects (id),
    ADD COLUMN blocked_by text   COLLATE "C" NOT NULL DEFAULT '[]',
    ADD COLUMN parent     bigint,
    ADD COLUMN assignee   text   COLLATE "C",
    ADD COLUMN labels     text[] COLLATE "C" NOT NULL DEFAULT '{}',
    ADD COLUMN links      text[] COLLATE "C" NOT NULL DEFAULT '{}',
    ADD COLUMN comments   text   COLLATE "C" NOT NULL DEFAULT '[]';
UPDATE tasks SET status = 'done' WHERE completed_at IS NOT NULL;

DROP INDEX tasks_in_order;
DROP INDEX tasks_by_project;
CREATE INDEX tasks_in_order ON tasks ("user", priority DESC, id, completed_at, status);
CREATE INDEX tasks_by_project ON tasks ("user", project, priority DESC, id, completed_at, status);
CREATE INDEX shared_tasks ON tasks (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX shared_tasks_by_user ON tasks ("user") WHERE project_id IS NOT NULL;

-- Which task waits for which, from `blocked_by` and, with `part` set, for each part of a task. Maintained by a trigger.
-- It has no policies: a cycle may lead through tasks that the viewer cannot see. It contains nothing but numbers.
CREATE TABLE task_edges (
    task    bigint  NOT NULL,
    blocker bigint  NOT NULL,
    part    integer NOT NULL,
    PRIMARY KEY (task, blocker, part)
);
CREATE INDEX task_edges_by_blocker ON task_edges (blocker, task);

-- The tasks that are neither done nor dropped, each with the number of those that it waits for. Maintained by a trigger.
CREATE TABLE open_tasks (
    task       bigint  PRIMARY KEY,
    status     text    COLLATE "C" NOT NULL,
    "user"     text    COLLATE "C" NOT NULL,
    project_id bigint,
    project    text    COLLATE "C" NOT NULL,
    assignee   text    COLLATE "C",
    priority   bigint  NOT NULL,
    due        text    COLLATE "C" NOT NULL,
    waits_for  bigint  NOT NULL
);
-- The ready tasks in the order in which they are claimed: of a user alone, shared ones, and those of a project.
CREATE INDEX ready_tasks ON open_tasks ("user", coalesce(assignee, ''), priority DESC, due, task)
    WHERE status = 'todo' AND waits_for = 0 AND project_id IS NULL;
CREATE INDEX ready_shared_tasks ON open_tasks (coalesce(assignee, ''), priority DESC, due, task)
    WHERE status = 'todo' AND waits_for = 0 AND project_id IS NOT NULL;
CREATE INDEX ready_tasks_by_project ON open_tasks (project, coalesce(assignee, ''), priority DESC, due, task)
    WHERE status = 'todo' AND waits_for = 0 AND project_id IS NOT NULL;
CREATE INDEX tasks_in_work ON open_tasks (priority DESC, due, task) WHERE status = 'doing';

-- The labels of open tasks. Maintained by a trigger.
CREATE TABLE open_labels (
    label text   COLLATE "C" NOT NULL,
    task  bigint NOT NULL,
    PRIMARY KEY (label, task)
);
CREATE INDEX open_labels_by_task ON open_labels (task);

-- Who holds a task and until when. `fence` is the `seq` of the change by which it was claimed. Not in the change log:
-- every call of the holder renews the lease.
CREATE TABLE claims (
    task       bigint PRIMARY KEY,
    fence      bigint NOT NULL,
    holder     text   COLLATE "C" NOT NULL,
    connection text   COLLATE "C" NOT NULL,
    claimed_at bigint NOT NULL,
    lease      bigint NOT NULL,
    until      bigint NOT NULL
);
CREATE INDEX claims_by_connection ON claims (connection);
CREATE INDEX claims_by_end ON claims (until);

-- Its statements look up rows by index whatever the statistics say: after an import there are none yet.
CREATE FUNCTION update_open_tasks() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    viewer   text    := coalesce(current_setting('dittybag.viewer', true), '');
    was_open boolean := TG_OP <> 'INSERT' AND OLD.status NOT IN ('done', 'dropped');
    is_open  boolean := TG_OP <> 'DELETE' AND NEW.status NOT IN ('done', 'dropped');
    moved    boolean := TG_OP <> 'UPDATE' OR OLD.blocked_by <> NEW.blocked_by
                        OR OLD.parent IS DISTINCT FROM NEW.parent;
BEGIN
    -- As the owner of the machine: tasks that the viewer cannot see may wait for this one.
    PERFORM set_config('dittybag.viewer', '', true);
    IF was_open AND (moved OR NOT is_open) THEN
        UPDATE open_tasks SET waits_for = waits_for
            - (SELECT count(*) FROM task_edges WHERE task_edges.task = open_tasks.task AND blocker = OLD.id)
        WHERE task = ANY (ARRAY(SELECT task_edges.task FROM task_edges WHERE blocker = OLD.id));
        DELETE FROM open_tasks WHERE task = OLD.id;
    END IF;
    IF moved AND TG_OP <> 'INSERT' THEN
        DELETE FROM task_edges WHERE task = OLD.id AND part = 0;
        DELETE FROM task_edges WHERE blocker = OLD.id AND part = 1;
    END IF;
    IF moved AND TG_OP <> 'DELETE' AND (NEW.blocked_by <> '[]' OR NEW.parent IS NOT NULL) THEN
        INSERT INTO task_edges
        SELECT DISTINCT NEW.id, value::bigint, 0 FROM json_array_elements_text(NEW.blocked_by::json)
        UNION ALL SELECT NEW.parent, NEW.id, 1 WHERE NEW.parent IS NOT NULL;
    END IF;
    IF is_open AND (moved OR NOT was_open) THEN
        INSERT INTO open_tasks
        VALUES (NEW.id, NEW.status, NEW."user", NEW.project_id, coalesce(NEW.project, ''), NEW.assignee, NEW.priority,
                coalesce(NEW.due_date, '~'),
                (SELECT count((SELECT open_tasks.task FROM open_tasks WHERE open_tasks.task = blocker))
                 FROM task_edges WHERE task_edges.task = NEW.id));
        UPDATE open_tasks SET waits_for = waits_for
            + (SELECT count(*) FROM task_edges WHERE task_edges.task = open_tasks.task AND blocker = NEW.id)
        WHERE task = ANY (ARRAY(SELECT task_edges.task FROM task_edges WHERE blocker = NEW.id));
    ELSIF is_open THEN
        UPDATE open_tasks SET status = NEW.status, "user" = NEW."user", project_id = NEW.project_id,
            project = coalesce(NEW.project, ''), assignee = NEW.assignee, priority = NEW.priority,
            due = coalesce(NEW.due_date, '~')
        WHERE task = NEW.id;
    END IF;
    PERFORM set_config('dittybag.viewer', viewer, true);
    RETURN NULL;
END
$$;

CREATE TRIGGER open_tasks_after_insert AFTER INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION update_open_tasks();
CREATE TRIGGER open_tasks_after_delete AFTER DELETE ON tasks FOR EACH ROW EXECUTE FUNCTION update_open_tasks();
CREATE TRIGGER open_tasks_after_update AFTER UPDATE ON tasks FOR EACH ROW
WHEN ((OLD.status, OLD."user", OLD.project_id, OLD.project, OLD.assignee, OLD.priority, OLD.due_date, OLD.blocked_by,
       OLD.parent) IS DISTINCT FROM
      (NEW.status, NEW."user", NEW.project_id, NEW.project, NEW.assignee, NEW.priority, NEW.due_date, NEW.blocked_by,
       NEW.parent))
EXECUTE FUNCTION update_open_tasks();

CREATE FUNCTION update_open_labels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        EXECUTE format('DELETE FROM %I.open_labels WHERE task = $1', TG_TABLE_SCHEMA) USING OLD.id;
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.status NOT IN ('done', 'dropped') THEN
        EXECUTE format('INSERT INTO %I.open_labels SELECT DISTINCT label, $2 FROM unnest($1) AS label', TG_TABLE_SCHEMA)
        USING NEW.labels, NEW.id;
    END IF;
    RETURN OLD;
END
$$;

CREATE TRIGGER open_labels_after_insert AFTER INSERT ON tasks FOR EACH ROW
WHEN (NEW.labels <> '{}') EXECUTE FUNCTION update_open_labels();
-- Before, because labels are visible only with their task.
CREATE TRIGGER open_labels_before_delete BEFORE DELETE ON tasks FOR EACH ROW
WHEN (OLD.labels <> '{}') EXECUTE FUNCTION update_open_labels();
CREATE TRIGGER open_labels_after_update AFTER UPDATE ON tasks FOR EACH ROW
WHEN (OLD.labels <> NEW.labels
      OR OLD.labels <> '{}' AND (OLD.status IN ('done', 'dropped')) <> (NEW.status IN ('done', 'dropped')))
EXECUTE FUNCTION update_open_labels();

-- A change of the status or of the assignee takes a task away from its holder.
CREATE FUNCTION end_claim() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DELETE FROM %I.claims WHERE task = $1', TG_TABLE_SCHEMA) USING OLD.id;
    RETURN OLD;
END
$$;

-- Before, because a claim is visible only with its task.
CREATE TRIGGER claims_before_delete BEFORE DELETE ON tasks FOR EACH ROW EXECUTE FUNCTION end_claim();
CREATE TRIGGER claims_after_update AFTER UPDATE ON tasks FOR EACH ROW
WHEN (NEW.status <> 'doing' OR OLD.assignee IS DISTINCT FROM NEW.assignee) EXECUTE FUNCTION end_claim();

INSERT INTO open_tasks
SELECT id, status, "user", NULL, coalesce(project, ''), NULL, priority, coalesce(due_date, '~'), 0
FROM tasks WHERE status <> 'done';

-- A task of a project is visible to those who see the project, any other one to its user.
DROP POLICY own ON tasks;
CREATE POLICY own ON tasks USING (project_id IS NULL AND "user" = (SELECT viewer()));
CREATE POLICY shared ON tasks USING (project_id IS NOT NULL AND (
    NOT EXISTS (SELECT FROM restricted_projects AS restricted WHERE restricted.project = tasks.project_id)
    OR EXISTS (SELECT FROM members WHERE members.project = tasks.project_id AND user_name = (SELECT viewer()))));

DROP POLICY own ON changes;
CREATE POLICY own ON changes USING (
    CASE WHEN kind = 'task' AND project IS NULL
         THEN coalesce(after, before)::json ->> 'user' = (SELECT viewer()) ELSE false END
);
DROP POLICY shared ON changes;
CREATE POLICY shared ON changes USING (project IS NOT NULL AND (
    NOT EXISTS (SELECT FROM restricted_projects AS restricted WHERE restricted.project = changes.project)
    OR EXISTS (SELECT FROM members WHERE members.project = changes.project AND user_name = (SELECT viewer()))));

-- A claim is visible where its task is.
ALTER TABLE claims ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY operator ON claims USING (is_operator_connection() OR (SELECT viewer()) IS NULL);
CREATE POLICY visible ON claims USING (EXISTS (SELECT FROM tasks WHERE tasks.id = claims.task));

-- Likewise its labels. What it waits for is written by a trigger only.
ALTER TABLE open_tasks ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY operator ON open_tasks USING (is_operator_connection() OR (SELECT viewer()) IS NULL);
CREATE POLICY own ON open_tasks FOR SELECT USING (project_id IS NULL AND "user" = (SELECT viewer()));
CREATE POLICY shared ON open_tasks FOR SELECT USING (project_id IS NOT NULL AND (
    NOT EXISTS (SELECT FROM restricted_projects AS restricted WHERE restricted.project = open_tasks.project_id)
    OR EXISTS (SELECT FROM members WHERE members.project = open_tasks.project_id AND user_name = (SELECT viewer()))));
ALTER TABLE open_labels ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY operator ON open_labels USING (is_operator_connection() OR (SELECT viewer()) IS NULL);
CREATE POLICY visible ON open_labels USING (EXISTS (SELECT FROM tasks WHERE tasks.id = open_labels.task));
