-- Times are microseconds since 1970, UTC. Ids and numbers are never reused after deletion: the number of a prompt
-- or resource is the `seq` of the change that created it. Texts are sorted by their bytes, as on SQLite.

CREATE TABLE projects (
    id         bigint PRIMARY KEY,
    name       text   COLLATE "C" NOT NULL UNIQUE,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    version    bigint NOT NULL,
    -- What is pinned, in order: prompt:ID, resource:ID, task:ID or library:NAME.
    pins       text[] COLLATE "C" NOT NULL DEFAULT '{}'
);

-- The `folded_...` columns hold the case-folded text that searches compare, where lower() in the collation "C" gives
-- something else; otherwise NULL. Those of tasks have no accents either.
--
-- `words` has the stems of all words of the searched texts for the ranked search, see docs/decisions/0023; the position of
-- a stem is 4 times the number of its occurrences in a column, plus the number of the column: 0 for title and name, 1 for
-- tags, 2 for the description, 3 for the content. `word_count` is the number of all words. The program computes them, so
-- that stems are the same as on SQLite. Servers merge the lists of new entries of these indexes between writes, so a list
-- can be longer.

CREATE TABLE prompts (
    number         bigint PRIMARY KEY,
    id             text   COLLATE "C" NOT NULL UNIQUE,
    project        bigint NOT NULL REFERENCES projects (id),
    name           text   COLLATE "C" NOT NULL,
    title          text   COLLATE "C" NOT NULL,
    description    text   COLLATE "C",
    content        text   COLLATE "C" NOT NULL,
    tags           text[] COLLATE "C" NOT NULL,
    arguments      text   COLLATE "C" NOT NULL,
    created_at     bigint NOT NULL,
    updated_at     bigint NOT NULL,
    version        bigint NOT NULL,
    folded_title   text   COLLATE "C",
    folded_content text   COLLATE "C",
    words          tsvector,
    word_count     bigint NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX prompts_by_name ON prompts (project, name);
CREATE UNIQUE INDEX prompts_by_title ON prompts (project, title);
CREATE INDEX prompts_in_order ON prompts (project, number);
CREATE INDEX prompts_by_update ON prompts (project, updated_at, number);
CREATE INDEX prompts_by_tag ON prompts USING gin (tags);
CREATE INDEX prompts_words ON prompts USING gin (words) WITH (gin_pending_list_limit = 32768);

-- The contents of all current and past resources, each stored once.
CREATE TABLE contents (
    sha256 text  COLLATE "C" PRIMARY KEY,
    bytes  bytea NOT NULL
);

CREATE TABLE resources (
    number         bigint  PRIMARY KEY,
    id             text    COLLATE "C" NOT NULL UNIQUE,
    project        bigint  NOT NULL REFERENCES projects (id),
    name           text    COLLATE "C" NOT NULL,
    uri            text    COLLATE "C" NOT NULL,
    -- A hash of the URI, which can be too long for an index.
    uri_digest     bytea   NOT NULL,
    title          text    COLLATE "C",
    description    text    COLLATE "C",
    mime_type      text    COLLATE "C" NOT NULL,
    is_text        boolean NOT NULL,
    is_template    boolean NOT NULL,
    sha256         text    COLLATE "C" NOT NULL REFERENCES contents (sha256),
    size           bigint  NOT NULL,
    created_at     bigint  NOT NULL,
    updated_at     bigint  NOT NULL,
    version        bigint  NOT NULL,
    folded_title   text    COLLATE "C",
    folded_content text    COLLATE "C",
    words          tsvector,
    word_count     bigint  NOT NULL DEFAULT 0,
    UNIQUE (project, name),
    UNIQUE (project, uri_digest)
);

CREATE INDEX resources_by_number ON resources (project, is_template, number);
CREATE INDEX resources_by_update ON resources (project, updated_at, number);
CREATE INDEX resources_by_size ON resources (project, size, number);
CREATE INDEX resources_by_type ON resources (project, mime_type, name);
CREATE INDEX resources_words ON resources USING gin (words) WITH (gin_pending_list_limit = 32768);

CREATE TABLE tasks (
    id            bigint PRIMARY KEY,
    "user"        text   COLLATE "C" NOT NULL,
    title         text   COLLATE "C" NOT NULL,
    project       text   COLLATE "C",
    priority      bigint NOT NULL,
    energy        text   COLLATE "C" NOT NULL,
    time_estimate text   COLLATE "C" NOT NULL,
    notes         text   COLLATE "C",
    due_date      text   COLLATE "C",
    completed_at  bigint,
    created_at    bigint NOT NULL,
    updated_at    bigint NOT NULL,
    version       bigint NOT NULL,
    folded_title  text   COLLATE "C",
    folded_notes  text   COLLATE "C",
    words         tsvector,
    word_count    bigint NOT NULL DEFAULT 0,
    -- What follows is for tasks that a team works on, see docs/decisions/0028.
    status        text   COLLATE "C" NOT NULL DEFAULT 'todo',
    project_id    bigint REFERENCES projects (id),
    blocked_by    text   COLLATE "C" NOT NULL DEFAULT '[]',
    parent        bigint,
    assignee      text   COLLATE "C",
    labels        text[] COLLATE "C" NOT NULL DEFAULT '{}',
    links         text[] COLLATE "C" NOT NULL DEFAULT '{}',
    comments      text   COLLATE "C" NOT NULL DEFAULT '[]'
);

-- With the project, which the policies look at, tasks are counted without reading them.
CREATE INDEX tasks_in_order ON tasks ("user", priority DESC, id, completed_at, status, project_id);
CREATE INDEX tasks_by_project ON tasks ("user", project, priority DESC, id, completed_at, status, project_id);
CREATE INDEX shared_tasks ON tasks (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX shared_tasks_by_user ON tasks ("user") WHERE project_id IS NOT NULL;
CREATE INDEX shared_tasks_in_order ON tasks (priority DESC, id, completed_at, status, project_id, project, "user")
    WHERE project_id IS NOT NULL;
CREATE INDEX tasks_words ON tasks USING gin (words) WITH (gin_pending_list_limit = 32768);

-- The last number assigned in each table whose numbers are not those of changes.
CREATE TABLE counters (
    name text   COLLATE "C" PRIMARY KEY,
    last bigint NOT NULL
) WITH (fillfactor = 20);

INSERT INTO counters VALUES ('projects', 0), ('tasks', 0), ('tokens', 0);

-- The change log: every write, in the transaction of that write. `batch` is the first change of the same use case.
-- Writers hold a lock, so `seq` has no gaps and is committed in order. Rows are never deleted.
CREATE TABLE changes (
    seq     bigint PRIMARY KEY,
    batch   bigint NOT NULL,
    at      bigint NOT NULL,
    actor   text   COLLATE "C" NOT NULL,
    action  text   COLLATE "C" NOT NULL CHECK (action IN ('create', 'update', 'delete', 'restore')),
    kind    text   COLLATE "C" NOT NULL CHECK (kind IN ('project', 'prompt', 'resource', 'task')),
    entity  text   COLLATE "C" NOT NULL,
    project bigint,
    before  text   COLLATE "C",
    after   text   COLLATE "C",
    -- The interface through which the change was made.
    interface text CHECK (interface IN ('web', 'cli', 'mcp')),
    CHECK (before IS NOT NULL OR after IS NOT NULL)
);

CREATE INDEX changes_by_entity ON changes (kind, entity, seq);
-- To count the changes of a batch by what they are. A batch of one change has no entry, so most writes pay nothing.
CREATE INDEX changes_by_batch ON changes (batch, kind, action, seq) WHERE batch <> seq;

-- The last commit of each writer, and what it made, in case the response is lost: NULL if the writer has given up this
-- commit. Then a call that arrives late must not make it.
CREATE TABLE writers (
    id      uuid   PRIMARY KEY,
    last    bigint NOT NULL,
    at      bigint NOT NULL,
    results bigint[]
) WITH (fillfactor = 20);

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
CREATE INDEX waiting_tasks ON open_tasks (task) WHERE waits_for > 0;
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

-- Sessions of HTTP clients, stored so that any process can continue them. They are not user data, and not in the
-- change log.
-- Each user has a limited number of sessions of each kind, so that nobody can end those of another user: `owner` is the
-- kind and the user.
CREATE TABLE sessions (
    id      text   COLLATE "C" PRIMARY KEY,
    state   bytea  NOT NULL,
    used_at bigint NOT NULL,
    owner   text   COLLATE "C" NOT NULL DEFAULT ''
);

CREATE INDEX sessions_used_at ON sessions (used_at);
CREATE INDEX sessions_by_owner ON sessions (owner, used_at);

-- Users, tokens and project members. They are not in the change log because they must not be undone, see
-- docs/decisions/0010.
CREATE TABLE users (
    name        text   COLLATE "C" PRIMARY KEY,
    created_at  bigint NOT NULL,
    disabled_at bigint
);

-- Names are ASCII, and unique regardless of case.
CREATE UNIQUE INDEX users_by_lower_name ON users (lower(name));

-- A token is stored only as its SHA-256 hash, in hexadecimal digits.
CREATE TABLE tokens (
    id         bigint PRIMARY KEY,
    sha256     text   COLLATE "C" NOT NULL UNIQUE,
    user_name  text   COLLATE "C" NOT NULL REFERENCES users (name),
    scope      text   COLLATE "C" NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    label      text   COLLATE "C" NOT NULL,
    hint       text   COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    used_at    bigint
);

CREATE INDEX tokens_by_user ON tokens (user_name, id);

-- A project without members is visible to all users. The members of a deleted project are kept, so that it is still
-- restricted to them if it is restored.
CREATE TABLE members (
    project   bigint NOT NULL,
    user_name text   COLLATE "C" NOT NULL REFERENCES users (name),
    role      text   COLLATE "C" NOT NULL CHECK (role IN ('read', 'write')),
    PRIMARY KEY (project, user_name)
);

-- The audit log of users, tokens and members. Rows are never deleted.
CREATE TABLE account_events (
    number    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        bigint NOT NULL,
    actor     text   COLLATE "C" NOT NULL,
    action    text   COLLATE "C" NOT NULL,
    user_name text   COLLATE "C" NOT NULL,
    detail    text   COLLATE "C" NOT NULL
);

-- Purges after which the tables were not rewritten yet, see docs/decisions/0015. In the change log, a purged state is
-- {"state":"purged",...}.
CREATE TABLE pending_purges (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     bigint NOT NULL,
    actor  text   COLLATE "C" NOT NULL
);

-- Row-level security, see docs/decisions/0012. The setting dittybag.viewer holds the viewer: user:NAME, or an empty
-- string for the operator, who sees all rows.

-- The user name of the viewer; NULL for the operator.
CREATE FUNCTION viewer() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN current_setting('dittybag.viewer', true) NOT IN ('', '*')
                THEN substr(current_setting('dittybag.viewer', true), 6) END
$$;

-- Whether the connection belongs to the operator permanently: then the setting is *. The planner evaluates this once, so
-- on such a connection the policies cost nothing and searches use their indexes. That is why it is declared IMMUTABLE,
-- although it is not: a connection whose setting is * must never serve another viewer.
CREATE FUNCTION is_operator_connection() RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(current_setting('dittybag.viewer', true) = '*', false)
$$;

-- The projects that have members, and are therefore visible only to them. All users can read this table.
CREATE TABLE restricted_projects (
    project bigint PRIMARY KEY
);

CREATE FUNCTION update_restricted_projects() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        EXECUTE format('INSERT INTO %I.restricted_projects VALUES ($1) ON CONFLICT DO NOTHING', TG_TABLE_SCHEMA)
        USING NEW.project;
    ELSE
        EXECUTE format('DELETE FROM %1$I.restricted_projects WHERE project = $1
                        AND NOT EXISTS (SELECT FROM %1$I.members WHERE project = $1)', TG_TABLE_SCHEMA)
        USING OLD.project;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER members_restrict_projects AFTER INSERT OR DELETE ON members
FOR EACH ROW EXECUTE FUNCTION update_restricted_projects();

-- Which projects use or used each row of `contents`. Rows are never deleted: the change log refers to old contents.
CREATE TABLE content_uses (
    sha256  text   COLLATE "C" NOT NULL,
    project bigint NOT NULL,
    PRIMARY KEY (sha256, project)
);

CREATE FUNCTION record_content_use() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO %I.content_uses VALUES ($1, $2) ON CONFLICT DO NOTHING', TG_TABLE_SCHEMA)
    USING NEW.sha256, NEW.project;
    RETURN NULL;
END
$$;

CREATE TRIGGER resources_use_contents AFTER INSERT OR UPDATE OF sha256, project ON resources
FOR EACH ROW EXECUTE FUNCTION record_content_use();

-- FORCE is needed because the role that runs the queries owns the tables.
DO $$
DECLARE
    table_name text;
    rule       record;
BEGIN
    FOREACH table_name IN ARRAY ARRAY[
        'projects', 'prompts', 'resources', 'contents', 'content_uses', 'tasks', 'changes', 'sessions',
        'users', 'tokens', 'members', 'account_events', 'pending_purges', 'claims', 'open_tasks',
        'open_labels'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', table_name);
        EXECUTE format('CREATE POLICY operator ON %I USING (is_operator_connection() OR (SELECT viewer()) IS NULL)',
                       table_name);
    END LOOP;

    -- Rows that belong to a user, and the commands that the policy allows on them.
    FOR rule IN SELECT * FROM (VALUES
        ('users', 'name', 'SELECT'), ('tokens', 'user_name', 'SELECT'), ('members', 'user_name', 'SELECT'), ('account_events', 'user_name', 'SELECT')
    ) AS rules (name, owner, command) LOOP
        EXECUTE format('CREATE POLICY own ON %I FOR %s USING (%I = (SELECT viewer()))',
                       rule.name, rule.command, rule.owner);
    END LOOP;

    -- Rows of a project that is not restricted, or that the user is a member of.
    FOR rule IN SELECT * FROM (VALUES
        ('projects', 'id', ''), ('prompts', 'project', ''), ('resources', 'project', ''), ('content_uses', 'project', ''),
        ('changes', 'project', 'project IS NOT NULL AND'), ('tasks', 'project_id', 'project_id IS NOT NULL AND')
    ) AS rules (name, project, condition) LOOP
        EXECUTE format(
            'CREATE POLICY shared ON %1$I USING (%3$s (
                 NOT EXISTS (SELECT FROM restricted_projects AS restricted WHERE restricted.project = %1$I.%2$I)
                 OR EXISTS (SELECT FROM members WHERE members.project = %1$I.%2$I AND user_name = (SELECT viewer()))))',
            rule.name, rule.project, rule.condition);
    END LOOP;
END
$$;

-- A task without a project is visible to its user.
CREATE POLICY own ON tasks USING (project_id IS NULL AND "user" = (SELECT viewer()));
CREATE POLICY own ON changes USING (
    CASE WHEN kind = 'task' AND project IS NULL
         THEN coalesce(after, before)::json ->> 'user' = (SELECT viewer()) ELSE false END
);

-- Content is inserted before the resource that uses it.
CREATE POLICY new ON contents FOR INSERT WITH CHECK (true);
CREATE POLICY shared ON contents FOR SELECT USING (
    EXISTS (SELECT FROM content_uses WHERE content_uses.sha256 = contents.sha256)
);

-- A claim is visible where its task is.
CREATE POLICY visible ON claims USING (EXISTS (SELECT FROM tasks WHERE tasks.id = claims.task));

-- Likewise its labels. What it waits for is written by a trigger only.
CREATE POLICY own ON open_tasks FOR SELECT USING (project_id IS NULL AND "user" = (SELECT viewer()));
CREATE POLICY shared ON open_tasks FOR SELECT USING (project_id IS NOT NULL AND (
    NOT EXISTS (SELECT FROM restricted_projects AS restricted WHERE restricted.project = open_tasks.project_id)
    OR EXISTS (SELECT FROM members WHERE members.project = open_tasks.project_id AND user_name = (SELECT viewer()))));
CREATE POLICY visible ON open_labels USING (EXISTS (SELECT FROM tasks WHERE tasks.id = open_labels.task));

-- The numbers of prompts, of prompts with each tag, and of resources of each MIME type are kept instead of counted:
-- counting a million takes as long as reading an index of them. A count of 0 has no row.
-- Maintained by triggers. Writers hold a lock, so they do not wait for each other's counts.
CREATE TABLE prompt_counts (
    project bigint PRIMARY KEY,
    count   bigint NOT NULL
) WITH (fillfactor = 20);

CREATE TABLE tag_counts (
    project bigint NOT NULL,
    tag     text   COLLATE "C" NOT NULL,
    count   bigint NOT NULL,
    PRIMARY KEY (project, tag)
) WITH (fillfactor = 50);

CREATE TABLE resource_counts (
    project   bigint NOT NULL,
    mime_type text   COLLATE "C" NOT NULL,
    count     bigint NOT NULL,
    PRIMARY KEY (project, mime_type)
) WITH (fillfactor = 20);

-- The triggers see all rows: who changes a prompt or resource sees its counts, and checking that again takes time. A
-- count is looked up by its key whatever the statistics say, so what has become 0 is deleted one by one.
CREATE FUNCTION change_prompt_counts() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    viewer     text    := coalesce(current_setting('dittybag.viewer', true), '');
    is_changed boolean := true;
    gone       record;
BEGIN
    PERFORM set_config('dittybag.viewer', '', true);
    IF TG_OP = 'DELETE' THEN
        INSERT INTO prompt_counts SELECT project, -count(*) FROM removed GROUP BY project
            ON CONFLICT (project) DO UPDATE SET count = prompt_counts.count + excluded.count;
        INSERT INTO tag_counts SELECT project, tag, -count(*) FROM removed, unnest(tags) AS tag GROUP BY project, tag
            ON CONFLICT (project, tag) DO UPDATE SET count = tag_counts.count + excluded.count;
    ELSIF EXISTS (SELECT FROM added JOIN removed USING (number)
                  WHERE added.tags <> removed.tags OR added.project <> removed.project) THEN
        INSERT INTO prompt_counts
            SELECT project, sum(change) FROM (
                SELECT project, 1 AS change FROM added UNION ALL SELECT project, -1 FROM removed) AS changes
            GROUP BY project HAVING sum(change) <> 0
            ON CONFLICT (project) DO UPDATE SET count = prompt_counts.count + excluded.count;
        INSERT INTO tag_counts
            SELECT project, tag, sum(change) FROM (
                SELECT project, unnest(tags) AS tag, 1 AS change FROM added
                UNION ALL SELECT project, unnest(tags), -1 FROM removed) AS changes
            GROUP BY project, tag HAVING sum(change) <> 0
            ON CONFLICT (project, tag) DO UPDATE SET count = tag_counts.count + excluded.count;
    ELSE
        -- Most updates change neither.
        is_changed := false;
    END IF;
    IF is_changed THEN
        FOR gone IN SELECT DISTINCT project FROM removed LOOP
            DELETE FROM prompt_counts WHERE project = gone.project AND count = 0;
        END LOOP;
        FOR gone IN SELECT DISTINCT project, unnest(tags) AS tag FROM removed LOOP
            DELETE FROM tag_counts WHERE project = gone.project AND tag = gone.tag AND count = 0;
        END LOOP;
    END IF;
    PERFORM set_config('dittybag.viewer', viewer, true);
    RETURN NULL;
END
$$;

-- Prompts are created one by one. A transaction that creates many sets dittybag.counts to later, and counts them itself.
CREATE FUNCTION count_new_prompt() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    viewer  text := coalesce(current_setting('dittybag.viewer', true), '');
    new_tag text;
BEGIN
    PERFORM set_config('dittybag.viewer', '', true);
    INSERT INTO prompt_counts VALUES (NEW.project, 1)
        ON CONFLICT (project) DO UPDATE SET count = prompt_counts.count + 1;
    FOREACH new_tag IN ARRAY NEW.tags LOOP
        INSERT INTO tag_counts VALUES (NEW.project, new_tag, 1)
            ON CONFLICT (project, tag) DO UPDATE SET count = tag_counts.count + 1;
    END LOOP;
    PERFORM set_config('dittybag.viewer', viewer, true);
    RETURN NULL;
END
$$;

CREATE TRIGGER prompt_counts_after_insert AFTER INSERT ON prompts FOR EACH ROW
WHEN (current_setting('dittybag.counts', true) IS DISTINCT FROM 'later') EXECUTE FUNCTION count_new_prompt();
CREATE TRIGGER prompt_counts_after_delete AFTER DELETE ON prompts REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION change_prompt_counts();
CREATE TRIGGER prompt_counts_after_update AFTER UPDATE ON prompts
REFERENCING NEW TABLE AS added OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION change_prompt_counts();

CREATE FUNCTION change_resource_counts() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    viewer text := coalesce(current_setting('dittybag.viewer', true), '');
    gone   record;
BEGIN
    PERFORM set_config('dittybag.viewer', '', true);
    IF TG_OP = 'INSERT' THEN
        INSERT INTO resource_counts SELECT project, mime_type, count(*) FROM added GROUP BY project, mime_type
            ON CONFLICT (project, mime_type) DO UPDATE SET count = resource_counts.count + excluded.count;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO resource_counts SELECT project, mime_type, -count(*) FROM removed GROUP BY project, mime_type
            ON CONFLICT (project, mime_type) DO UPDATE SET count = resource_counts.count + excluded.count;
    ELSE
        INSERT INTO resource_counts
            SELECT project, mime_type, sum(change) FROM (
                SELECT project, mime_type, 1 AS change FROM added
                UNION ALL SELECT project, mime_type, -1 FROM removed) AS changes
            GROUP BY project, mime_type HAVING sum(change) <> 0
            ON CONFLICT (project, mime_type) DO UPDATE SET count = resource_counts.count + excluded.count;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        FOR gone IN SELECT DISTINCT project, mime_type FROM removed LOOP
            DELETE FROM resource_counts
            WHERE project = gone.project AND mime_type = gone.mime_type AND count = 0;
        END LOOP;
    END IF;
    PERFORM set_config('dittybag.viewer', viewer, true);
    RETURN NULL;
END
$$;

CREATE TRIGGER resource_counts_after_insert AFTER INSERT ON resources REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION change_resource_counts();
CREATE TRIGGER resource_counts_after_delete AFTER DELETE ON resources REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION change_resource_counts();
CREATE TRIGGER resource_counts_after_update AFTER UPDATE ON resources
REFERENCING NEW TABLE AS added OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION change_resource_counts();

-- The projects that are hidden from the viewer, once for each statement.
CREATE FUNCTION hidden_projects() RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
    SELECT ARRAY(SELECT project FROM restricted_projects WHERE NOT EXISTS (
        SELECT FROM members WHERE members.project = restricted_projects.project AND user_name = viewer()))
$$;

-- A count is visible where the counted rows are. One policy without subqueries, which each write would prepare anew.
CREATE POLICY visible ON prompt_counts
USING (is_operator_connection() OR viewer() IS NULL OR project <> ALL ((SELECT hidden_projects())::bigint[]));
CREATE POLICY visible ON tag_counts
USING (is_operator_connection() OR viewer() IS NULL OR project <> ALL ((SELECT hidden_projects())::bigint[]));
CREATE POLICY visible ON resource_counts
USING (is_operator_connection() OR viewer() IS NULL OR project <> ALL ((SELECT hidden_projects())::bigint[]));
ALTER TABLE prompt_counts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE tag_counts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE resource_counts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

-- A batch of writes is made by one call of a function, which is also its transaction, see docs/decisions/0029. The functions
-- that the program calls set the search path; those that they call inherit it.

-- Waits for the writers' lock, and sets what the transaction of a write needs whatever the settings of the session: each
-- statement sees what was committed before it, and the commit is on disk before the response. The viewer is the operator.
CREATE FUNCTION lock_writers(lock_class integer, lock_key integer, milliseconds integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'writers need the isolation level read committed';
    END IF;
    PERFORM set_config('dittybag.viewer', '', true), set_config('lock_timeout', milliseconds::text, true);
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM pg_advisory_xact_lock(lock_class, lock_key);
END
$$;

-- Records a commit of a writer; with NULL as `made`, that it was given up.
CREATE FUNCTION record_commit(writer uuid, commit_number bigint, made bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    now_at bigint := extract(epoch FROM clock_timestamp()) * 1000000;
BEGIN
    IF commit_number = 1 THEN
        -- Records of processes that ended long ago.
        DELETE FROM writers WHERE at < now_at - 7 * 24 * 3600 * 1000000::bigint;
    END IF;
    INSERT INTO writers (id, last, at, results) VALUES (writer, commit_number, now_at, made)
    ON CONFLICT (id) DO UPDATE SET last = excluded.last, at = excluded.at, results = excluded.results;
END
$$;

-- Returns what a commit made whose response was lost. If it was not made, returns NULL and gives it up, so that it never is.
CREATE FUNCTION settle_commit(writer uuid, commit_number bigint, lock_class integer, lock_key integer) RETURNS bigint[]
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    found writers;
BEGIN
    PERFORM lock_writers(lock_class, lock_key, 4000);
    SELECT * INTO found FROM writers WHERE id = writer;
    IF found.last >= commit_number THEN
        RETURN found.results;
    END IF;
    PERFORM record_commit(writer, commit_number, NULL);
    RETURN NULL;
END
$$;

-- Makes one write. Returns whether it fits: the row had the version, or the unique values of a new row were free, which is
-- left to the unique indexes because the planner may choose another index for a query. `state` is the state after it as in
-- the change log, NULL to delete the row. `others` has the columns that are not in the state.
CREATE FUNCTION write_row(row_kind text, row_number bigint, row_version bigint, state text, others text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    CASE row_kind
    WHEN 'prompt' THEN
        IF state IS NULL THEN
            DELETE FROM prompts WHERE number = row_number AND version = row_version;
        ELSIF row_version = 0 THEN
            INSERT INTO prompts (
                number, id, project, name, title, description, content, tags, arguments, created_at, updated_at, version,
                folded_title, folded_content, words, word_count)
            SELECT
                number, id, project, name, title, description, content, tags, arguments, created_at, updated_at, version,
                folded_title, folded_content, words, word_count
            FROM json_populate_record(json_populate_record(NULL::prompts, state::json), others::json)
            ON CONFLICT DO NOTHING;
        ELSE
            UPDATE prompts SET (
                number, id, project, name, title, description, content, tags, arguments, created_at, updated_at, version,
                folded_title, folded_content, words, word_count
            ) = (SELECT
                number, id, project, name, title, description, content, tags, arguments, created_at, updated_at, version,
                folded_title, folded_content, words, word_count
            FROM json_populate_record(json_populate_record(NULL::prompts, state::json), others::json))
            WHERE number = row_number AND version = row_version;
        END IF;
    WHEN 'resource' THEN
        IF state IS NULL THEN
            DELETE FROM resources WHERE number = row_number AND version = row_version;
        ELSIF row_version = 0 THEN
            INSERT INTO resources (
                number, id, project, name, uri, uri_digest, title, description, mime_type, is_text, is_template, sha256,
                size, created_at, updated_at, version, folded_title, folded_content, words, word_count)
            SELECT
                number, id, project, name, uri, uri_digest, title, description, mime_type, is_text, is_template, sha256,
                size, created_at, updated_at, version, folded_title, folded_content, words, word_count
            FROM json_populate_record(json_populate_record(NULL::resources, state::json), others::json)
            ON CONFLICT DO NOTHING;
        ELSE
            UPDATE resources SET (
                number, id, project, name, uri, uri_digest, title, description, mime_type, is_text, is_template, sha256,
                size, created_at, updated_at, version, folded_title, folded_content, words, word_count
            ) = (SELECT
                number, id, project, name, uri, uri_digest, title, description, mime_type, is_text, is_template, sha256,
                size, created_at, updated_at, version, folded_title, folded_content, words, word_count
            FROM json_populate_record(json_populate_record(NULL::resources, state::json), others::json))
            WHERE number = row_number AND version = row_version;
        END IF;
    WHEN 'task' THEN
        IF state IS NULL THEN
            DELETE FROM tasks WHERE id = row_number AND version = row_version;
        ELSIF row_version = 0 THEN
            INSERT INTO tasks (
                id, "user", title, project, priority, energy, time_estimate, notes, due_date, completed_at, created_at,
                updated_at, version, status, project_id, blocked_by, parent, assignee, labels, links, comments,
                folded_title, folded_notes, words, word_count)
            SELECT
                row_number, "user", title, project, priority, energy, time_estimate, notes, due_date, completed_at, created_at,
                updated_at, version, status, project_id, blocked_by, parent, assignee, labels, links, comments,
                folded_title, folded_notes, words, word_count
            FROM json_populate_record(NULL::tasks, others::json)
            ON CONFLICT DO NOTHING;
        ELSE
            UPDATE tasks SET (
                "user", title, project, priority, energy, time_estimate, notes, due_date, completed_at, created_at,
                updated_at, version, status, project_id, blocked_by, parent, assignee, labels, links, comments,
                folded_title, folded_notes, words, word_count
            ) = (SELECT
                "user", title, project, priority, energy, time_estimate, notes, due_date, completed_at, created_at,
                updated_at, version, status, project_id, blocked_by, parent, assignee, labels, links, comments,
                folded_title, folded_notes, words, word_count
            FROM json_populate_record(NULL::tasks, others::json))
            WHERE id = row_number AND version = row_version;
        END IF;
    WHEN 'project' THEN
        IF state IS NULL THEN
            DELETE FROM projects WHERE id = row_number AND version = row_version;
        ELSIF row_version = 0 THEN
            INSERT INTO projects (id, name, created_at, updated_at, version, pins)
            SELECT id, name, created_at, updated_at, version, coalesce(pins, '{}')
            FROM json_populate_record(NULL::projects, state::json)
            ON CONFLICT DO NOTHING;
        ELSE
            UPDATE projects SET (name, created_at, updated_at, version, pins) = (
                SELECT name, created_at, updated_at, version, coalesce(pins, '{}')
                FROM json_populate_record(NULL::projects, state::json))
            WHERE id = row_number AND version = row_version;
        END IF;
    END CASE;
    RETURN FOUND;
END
$$;

-- Takes the next number of a table with numbers of its own, or the given one if it is not 0.
CREATE FUNCTION take_number(row_kind text, given bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    taken bigint;
BEGIN
    UPDATE counters SET last = greatest(last + (given = 0)::int, given) WHERE name = row_kind || 's'
    RETURNING CASE WHEN given = 0 THEN last ELSE given END INTO taken;
    RETURN taken;
END
$$;

-- Puts the number of a new row into its state, which begins with {"number":0 or {"id":0.
CREATE FUNCTION numbered_state(state text, row_number bigint) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE WHEN starts_with(state, '{"number":0,') THEN '{"number":' || row_number || substr(state, 12)
                WHEN starts_with(state, '{"id":0,') THEN '{"id":' || row_number || substr(state, 8)
                ELSE state END;
END
$$;

-- Counts the new prompts with numbers greater than this.
CREATE FUNCTION count_new_prompts(last_number bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO prompt_counts SELECT project, count(*) FROM prompts WHERE number > last_number GROUP BY project
        ON CONFLICT (project) DO UPDATE SET count = prompt_counts.count + excluded.count;
    INSERT INTO tag_counts
        SELECT project, tag, count(*) FROM prompts, unnest(tags) AS tag WHERE number > last_number GROUP BY project, tag
        ON CONFLICT (project, tag) DO UPDATE SET count = tag_counts.count + excluded.count;
END
$$;

-- Counts the prompts that writes have created, whatever later writes have made of them: these are counted by triggers.
CREATE FUNCTION count_created_prompts(kinds text[], versions bigint[], states text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    viewer  text := coalesce(current_setting('dittybag.viewer', true), '');
    created prompts[];
BEGIN
    SELECT array_agg(json_populate_record(NULL::prompts, state::json)) INTO created
    FROM unnest(kinds, versions, states) AS written (kind, version, state) WHERE kind = 'prompt' AND version = 0;
    IF created IS NULL THEN
        RETURN;
    END IF;
    PERFORM set_config('dittybag.viewer', '', true);
    INSERT INTO prompt_counts SELECT project, count(*) FROM unnest(created) GROUP BY project
        ON CONFLICT (project) DO UPDATE SET count = prompt_counts.count + excluded.count;
    INSERT INTO tag_counts SELECT project, tag, count(*) FROM unnest(created), unnest(tags) AS tag GROUP BY project, tag
        ON CONFLICT (project, tag) DO UPDATE SET count = tag_counts.count + excluded.count;
    -- A count of 0 has no row.
    DELETE FROM prompt_counts WHERE count = 0 AND project IN (SELECT project FROM unnest(created));
    DELETE FROM tag_counts
    WHERE count = 0 AND (project, tag) IN (SELECT project, tag FROM unnest(created), unnest(tags) AS tag);
    PERFORM set_config('dittybag.viewer', viewer, true);
END
$$;

-- Makes the writes of several use cases and commits them: each of them as a whole, or not at all if what it has read no
-- longer holds. Returns the schema version, the `seq` of the last change, the `seq` of the first change of each use case,
-- 0 if it was left out, and the number of each written row. Nothing is written if the schema has another version.
CREATE FUNCTION commit_writes(
    writer uuid, commit_number bigint, lock_class integer, lock_key integer, channel text, known_schema bigint,
    -- Of each use case.
    viewers text[], actors text[], interfaces text[], times bigint[],
    project_counts integer[], content_counts integer[], write_counts integer[],
    -- The projects that use cases have read, and their versions.
    known_projects bigint[], known_versions bigint[],
    -- New contents of resources.
    hashes text[], contents bytea[],
    -- Writes. Of a new row, the version is 0, and the number too.
    actions text[], kinds text[], numbers bigint[], versions bigint[], entities text[], projects bigint[],
    befores text[], afters text[], more_columns text[]
) RETURNS bigint[] LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    current_schema_version bigint;
    old_seq                bigint;
    last_seq               bigint;
    first_seq              bigint;
    row_number             bigint;
    state                  text;
    viewer                 text;
    project_end            integer;
    content_end            integer;
    write_end              integer;
    is_left_out            boolean[] := array_fill(false, ARRAY[cardinality(viewers)]);
    first_seqs             bigint[];
    row_numbers            bigint[];
    made                   bigint[];
    counts_later           boolean;
    -- The use case that is being made; after all of them, 0.
    job                    integer := 1;
BEGIN
    PERFORM lock_writers(lock_class, lock_key, 4000);
    IF EXISTS (SELECT FROM writers WHERE id = writer AND last >= commit_number) THEN
        RAISE EXCEPTION 'the writer has given up commit %', commit_number;
    END IF;
    SELECT coalesce(max(number), 0) INTO current_schema_version FROM applied_migrations;
    IF current_schema_version <> known_schema THEN
        RETURN ARRAY[current_schema_version];
    END IF;
    SELECT coalesce(max(seq), 0) INTO old_seq FROM changes;

    counts_later := cardinality(kinds) > 3;
    IF counts_later THEN
        PERFORM set_config('dittybag.counts', 'later', true);
    END IF;
    -- Nearly always, all fit. If a write does not, all are undone, and made again without its use case: a savepoint for
    -- each use case would take longer than its writes, because each locks the row of its project.
    WHILE job > 0 LOOP
        last_seq := old_seq;
        viewer := '';
        project_end := 0;
        content_end := 0;
        write_end := 0;
        first_seqs := '{}';
        row_numbers := numbers;
        PERFORM set_config('dittybag.viewer', viewer, true);
        BEGIN
            job := 1;
            WHILE job <= cardinality(viewers) LOOP
                IF viewers[job] <> viewer THEN
                    viewer := viewers[job];
                    PERFORM set_config('dittybag.viewer', viewer, true);
                END IF;
                FOR i IN project_end + 1 .. project_end + project_counts[job] LOOP
                    EXIT WHEN is_left_out[job];
                    is_left_out[job] := NOT EXISTS (
                        SELECT FROM projects AS read WHERE read.id = known_projects[i] AND read.version = known_versions[i]);
                END LOOP;
                first_seq := CASE WHEN is_left_out[job] THEN 0 ELSE last_seq + 1 END;
                IF NOT is_left_out[job] THEN
                    FOR i IN content_end + 1 .. content_end + content_counts[job] LOOP
                        INSERT INTO contents (sha256, bytes) VALUES (hashes[i], contents[i]) ON CONFLICT DO NOTHING;
                    END LOOP;
                    FOR i IN write_end + 1 .. write_end + write_counts[job] LOOP
                        last_seq := last_seq + 1;
                        row_number := numbers[i];
                        IF row_number = 0 THEN
                            row_number := CASE kinds[i] WHEN 'task' THEN take_number('task', 0) ELSE last_seq END;
                            row_numbers[i] := row_number;
                        END IF;
                        state := numbered_state(afters[i], row_number);
                        IF NOT write_row(kinds[i], row_number, versions[i], state, more_columns[i]) THEN
                            RAISE EXCEPTION 'write % does not fit', i USING ERRCODE = 'DBAG1';
                        END IF;
                        INSERT INTO changes (seq, batch, at, actor, action, kind, entity, project, before, after, interface)
                        VALUES (last_seq, first_seq, times[job], actors[job], actions[i], kinds[i],
                                coalesce(entities[i], row_number::text), projects[i], befores[i], state, interfaces[job]);
                    END LOOP;
                END IF;
                first_seqs := first_seqs || first_seq;
                project_end := project_end + project_counts[job];
                content_end := content_end + content_counts[job];
                write_end := write_end + write_counts[job];
                job := job + 1;
            END LOOP;
            job := 0;
        EXCEPTION WHEN unique_violation OR SQLSTATE 'DBAG1' THEN
            is_left_out[job] := true;
        END;
    END LOOP;

    -- The number of a new prompt is the `seq` of its change.
    IF counts_later AND EXISTS (
        SELECT FROM unnest(kinds, versions) AS written (kind, version) WHERE kind = 'prompt' AND version = 0) THEN
        PERFORM set_config('dittybag.viewer', '', true), count_new_prompts(old_seq);
    END IF;
    made := ARRAY[current_schema_version, last_seq] || first_seqs || row_numbers;
    -- If all were left out, there is nothing to commit.
    IF 0 < ANY (first_seqs) THEN
        PERFORM record_commit(writer, commit_number, made);
        PERFORM pg_notify(channel, last_seq::text);
    END IF;
    RETURN made;
END
$$;

-- Makes writes with their changes in a transaction that has the lock: those of a use case, or of the log of another
-- workspace. Returns the number of each written row. An error has the position of the write as its detail.
CREATE FUNCTION apply_changes(
    seqs bigint[], batches bigint[], times bigint[], actors text[], interfaces text[],
    actions text[], kinds text[], numbers bigint[], versions bigint[], entities text[], projects bigint[],
    befores text[], afters text[], more_columns text[]
) RETURNS bigint[] LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    place       integer;
    row_number  bigint;
    row_numbers bigint[] := '{}';
    states      text[]   := afters;
    setting     text     := coalesce(current_setting('dittybag.counts', true), '');
BEGIN
    -- A transaction with many calls would leave a dead version of the counts for each prompt, and each count reads them.
    PERFORM set_config('dittybag.counts', 'later', true);
    BEGIN
        FOR i IN 1 .. cardinality(seqs) LOOP
            place := i;
            row_number := numbers[i];
            IF versions[i] = 0 AND kinds[i] IN ('task', 'project') THEN
                row_number := take_number(kinds[i], row_number);
                IF numbers[i] = 0 THEN
                    states[i] := numbered_state(afters[i], row_number);
                END IF;
            END IF;
            IF NOT write_row(kinds[i], row_number, versions[i], states[i], more_columns[i]) THEN
                RAISE EXCEPTION 'write % does not fit', i
                USING ERRCODE = CASE versions[i] WHEN 0 THEN 'unique_violation' ELSE 'DBAG1' END;
            END IF;
            row_numbers := row_numbers || row_number;
        END LOOP;
    EXCEPTION WHEN integrity_constraint_violation OR SQLSTATE 'DBAG1' THEN
        RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM, DETAIL = place::text;
    END;
    PERFORM set_config('dittybag.counts', setting, true), count_created_prompts(kinds, versions, states);
    INSERT INTO changes (seq, batch, at, actor, action, kind, entity, project, before, after, interface)
    SELECT log.seq, log.batch, log.at, log.actor, log.action, log.kind, coalesce(log.entity, log.number::text),
           CASE log.kind WHEN 'project' THEN log.number ELSE log.project END, log.before, log.after, log.interface
    FROM unnest(seqs, batches, times, actors, actions, kinds, entities, row_numbers, projects, befores, states, interfaces)
      AS log (seq, batch, at, actor, action, kind, entity, number, project, before, after, interface);
    RETURN row_numbers;
END
$$;
