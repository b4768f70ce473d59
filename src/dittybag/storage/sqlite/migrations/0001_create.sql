-- Times are microseconds since 1970, UTC. Ids and numbers are never reused after deletion: the number of a prompt
-- or resource is the `seq` of the change that created it.

CREATE TABLE projects (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    -- What is pinned, in order: prompt:ID, resource:ID, task:ID or library:NAME.
    pins       TEXT    NOT NULL DEFAULT '[]'
) STRICT;

-- The `folded_...` columns hold the case-folded text that searches compare, where SQLite's lower() gives something else;
-- otherwise NULL.

CREATE TABLE prompts (
    number         INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    project        INTEGER NOT NULL REFERENCES projects (id),
    name           TEXT    NOT NULL,
    title          TEXT    NOT NULL,
    description    TEXT,
    content        TEXT    NOT NULL,
    tags           TEXT    NOT NULL,
    arguments      TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    folded_title   TEXT,
    folded_content TEXT
) STRICT;

CREATE UNIQUE INDEX prompts_by_name ON prompts (project, name);
CREATE UNIQUE INDEX prompts_by_title ON prompts (project, title);
CREATE INDEX prompts_in_order ON prompts (project, number);
CREATE INDEX prompts_by_update ON prompts (project, updated_at, number);

-- An index of prompts by tag and time of update. Maintained by triggers.
CREATE TABLE prompt_tags (
    project    INTEGER NOT NULL,
    tag        TEXT    NOT NULL,
    updated_at INTEGER NOT NULL,
    prompt     INTEGER NOT NULL,
    PRIMARY KEY (project, tag, updated_at, prompt)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER prompt_tags_after_insert AFTER INSERT ON prompts WHEN new.tags <> '[]' BEGIN
    INSERT INTO prompt_tags SELECT new.project, value, new.updated_at, new.number FROM json_each(new.tags);
END;

CREATE TRIGGER prompt_tags_after_delete AFTER DELETE ON prompts WHEN old.tags <> '[]' BEGIN
    DELETE FROM prompt_tags
    WHERE (project, tag, updated_at, prompt) IN
          (SELECT old.project, value, old.updated_at, old.number FROM json_each(old.tags));
END;

CREATE TRIGGER prompt_tags_after_update
AFTER UPDATE ON prompts WHEN old.tags <> '[]' OR new.tags <> '[]' BEGIN
    DELETE FROM prompt_tags
    WHERE (project, tag, updated_at, prompt) IN
          (SELECT old.project, value, old.updated_at, old.number FROM json_each(old.tags));
    INSERT INTO prompt_tags SELECT new.project, value, new.updated_at, new.number FROM json_each(new.tags);
END;

-- The contents of all current and past resources, each stored once.
CREATE TABLE contents (
    sha256 TEXT NOT NULL UNIQUE,
    bytes  BLOB NOT NULL
) STRICT;

CREATE TABLE resources (
    number         INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    project        INTEGER NOT NULL REFERENCES projects (id),
    name           TEXT    NOT NULL,
    uri            TEXT    NOT NULL,
    title          TEXT,
    description    TEXT,
    mime_type      TEXT    NOT NULL,
    is_text        INTEGER NOT NULL,
    is_template    INTEGER NOT NULL,
    sha256         TEXT    NOT NULL REFERENCES contents (sha256),
    size           INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    folded_title   TEXT,
    folded_content TEXT,
    UNIQUE (project, name),
    UNIQUE (project, uri)
) STRICT;

CREATE INDEX resources_by_number ON resources (project, is_template, number);

-- The `folded_...` columns of tasks have no accents either.
CREATE TABLE tasks (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    user          TEXT    NOT NULL,
    title         TEXT    NOT NULL,
    project       TEXT,
    priority      INTEGER NOT NULL,
    energy        TEXT    NOT NULL,
    time_estimate TEXT    NOT NULL,
    notes         TEXT,
    due_date      TEXT,
    completed_at  INTEGER,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    folded_title  TEXT,
    folded_notes  TEXT,
    -- What follows is for tasks that a team works on, see docs/decisions/0028.
    status        TEXT    NOT NULL DEFAULT 'todo',
    project_id    INTEGER REFERENCES projects (id),
    blocked_by    TEXT    NOT NULL DEFAULT '[]',
    parent        INTEGER,
    assignee      TEXT,
    labels        TEXT    NOT NULL DEFAULT '[]',
    links         TEXT    NOT NULL DEFAULT '[]',
    comments      TEXT    NOT NULL DEFAULT '[]'
) STRICT;

CREATE INDEX tasks_in_order ON tasks (user, priority DESC, id, completed_at, status);
CREATE INDEX tasks_by_project ON tasks (user, project, priority DESC, id, completed_at, status);
CREATE INDEX shared_tasks ON tasks (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX shared_tasks_by_user ON tasks (user) WHERE project_id IS NOT NULL;

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

-- The change log: every write, in the transaction of that write. `batch` is the first change of the same use case, and
-- NULL in that change itself. Rows are never deleted.
CREATE TABLE changes (
    seq     INTEGER PRIMARY KEY,
    batch   INTEGER,
    at      INTEGER NOT NULL,
    actor   TEXT    NOT NULL,
    action  TEXT    NOT NULL CHECK (action IN ('create', 'update', 'delete', 'restore')),
    kind    TEXT    NOT NULL CHECK (kind IN ('project', 'prompt', 'resource', 'task')),
    entity  TEXT    NOT NULL,
    project INTEGER,
    before  TEXT,
    after   TEXT,
    -- The interface through which the change was made.
    interface TEXT CHECK (interface IN ('web', 'cli', 'mcp')),
    CHECK (before IS NOT NULL OR after IS NOT NULL)
) STRICT;

-- Changes that create a prompt or resource are not indexed: their `seq` is the number of the entity.
CREATE INDEX changes_by_entity ON changes (kind, entity, seq)
    WHERE action <> 'create' OR kind IN ('project', 'task');

-- To count the changes of a batch by what they are. A batch of one change has no entry, so most writes pay nothing.
CREATE INDEX changes_by_batch ON changes (batch, kind, action, seq) WHERE batch <> seq;

-- Purges after which the file was not scrubbed yet, see docs/decisions/0015. In the change log, a purged state is
-- {"state":"purged",...}.
CREATE TABLE pending_purges (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    actor  TEXT    NOT NULL
) STRICT;

-- The numbers of prompts, and of prompts with each tag, are kept instead of counted: counting a million takes as long as
-- reading an index of them. A count of 0 has no row. Maintained by triggers.
CREATE TABLE prompt_counts (
    project INTEGER PRIMARY KEY,
    count   INTEGER NOT NULL
) STRICT;
CREATE TABLE tag_counts (
    project INTEGER NOT NULL,
    tag     TEXT    NOT NULL,
    count   INTEGER NOT NULL,
    PRIMARY KEY (project, tag)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER prompt_counts_after_insert AFTER INSERT ON prompts BEGIN
    INSERT INTO prompt_counts VALUES (new.project, 1) ON CONFLICT DO UPDATE SET count = count + 1;
END;

CREATE TRIGGER prompt_counts_after_delete AFTER DELETE ON prompts BEGIN
    UPDATE prompt_counts SET count = count - 1 WHERE project = old.project;
    DELETE FROM prompt_counts WHERE project = old.project AND count = 0;
END;

CREATE TRIGGER prompt_counts_after_update AFTER UPDATE ON prompts WHEN old.project <> new.project BEGIN
    UPDATE prompt_counts SET count = count - 1 WHERE project = old.project;
    DELETE FROM prompt_counts WHERE project = old.project AND count = 0;
    INSERT INTO prompt_counts VALUES (new.project, 1) ON CONFLICT DO UPDATE SET count = count + 1;
END;

CREATE TRIGGER tag_counts_after_insert AFTER INSERT ON prompts WHEN new.tags <> '[]' BEGIN
    INSERT INTO tag_counts SELECT new.project, value, 1 FROM json_each(new.tags) WHERE true
        ON CONFLICT DO UPDATE SET count = count + 1;
END;

CREATE TRIGGER tag_counts_after_delete AFTER DELETE ON prompts WHEN old.tags <> '[]' BEGIN
    UPDATE tag_counts SET count = count - 1
    WHERE project = old.project AND tag IN (SELECT value FROM json_each(old.tags));
    DELETE FROM tag_counts
    WHERE project = old.project AND tag IN (SELECT value FROM json_each(old.tags)) AND count = 0;
END;

CREATE TRIGGER tag_counts_after_update
AFTER UPDATE ON prompts WHEN old.tags <> new.tags OR old.project <> new.project BEGIN
    UPDATE tag_counts SET count = count - 1
    WHERE project = old.project AND tag IN (SELECT value FROM json_each(old.tags));
    INSERT INTO tag_counts SELECT new.project, value, 1 FROM json_each(new.tags) WHERE true
        ON CONFLICT DO UPDATE SET count = count + 1;
    DELETE FROM tag_counts
    WHERE project = old.project AND tag IN (SELECT value FROM json_each(old.tags)) AND count = 0;
END;

-- Trigram indexes for search. They yield candidates, which each query compares with the text itself. The writer
-- maintains them, not triggers, see docs/decisions/0005.
CREATE VIRTUAL TABLE prompt_index USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);
CREATE VIRTUAL TABLE resource_index USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);
CREATE VIRTUAL TABLE task_index USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);

-- The index of the ranked search: the stems of all words, see docs/decisions/0023. The row id is 4 times the number of
-- the entity, plus 0 for a prompt, 1 for a resource and 2 for a task. The program computes the stems and maintains the
-- index, as it does those of trigrams.
CREATE VIRTUAL TABLE word_index USING fts5 (
    name, tags, description, content, content = '', contentless_delete = 1, tokenize = 'ascii'
);
-- How many rows each stem occurs in.
CREATE VIRTUAL TABLE word_frequencies USING fts5vocab (word_index, row);

-- Segments are merged less often than by default, so that a page is written again less often.
INSERT INTO prompt_index (prompt_index, rank) VALUES ('automerge', 8), ('crisismerge', 32);
INSERT INTO resource_index (resource_index, rank) VALUES ('automerge', 8), ('crisismerge', 32);
INSERT INTO task_index (task_index, rank) VALUES ('automerge', 8), ('crisismerge', 32);
INSERT INTO word_index (word_index, rank) VALUES ('automerge', 8), ('crisismerge', 32);

-- Sessions of HTTP clients, stored so that any process can continue them. They are not user data, and not in the
-- change log.
-- Each user has a limited number of sessions of each kind, so that nobody can end those of another user: `owner` is the
-- kind and the user.
CREATE TABLE sessions (
    id      TEXT    PRIMARY KEY,
    state   BLOB    NOT NULL,
    used_at INTEGER NOT NULL,
    owner   TEXT    NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_used_at ON sessions (used_at);
CREATE INDEX sessions_by_owner ON sessions (owner, used_at);

-- Users, tokens and project members. They are not in the change log because they must not be undone, see
-- docs/decisions/0010.
CREATE TABLE users (
    name        TEXT    PRIMARY KEY,
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER
) STRICT, WITHOUT ROWID;

-- Names are ASCII, and unique regardless of case.
CREATE UNIQUE INDEX users_by_lower_name ON users (lower(name));

-- A token is stored only as its SHA-256 hash, in hexadecimal digits.
CREATE TABLE tokens (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    sha256     TEXT    NOT NULL UNIQUE,
    user_name  TEXT    NOT NULL REFERENCES users (name),
    scope      TEXT    NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    label      TEXT    NOT NULL,
    hint       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    used_at    INTEGER
) STRICT;

CREATE INDEX tokens_by_user ON tokens (user_name, id);

-- A project without members is visible to all users. The members of a deleted project are kept, so that it is still
-- restricted to them if it is restored.
CREATE TABLE members (
    project   INTEGER NOT NULL,
    user_name TEXT    NOT NULL REFERENCES users (name),
    role      TEXT    NOT NULL CHECK (role IN ('read', 'write')),
    PRIMARY KEY (project, user_name)
) STRICT, WITHOUT ROWID;

-- The projects that have members, and are therefore visible only to them. A table on PostgreSQL.
CREATE VIEW restricted_projects AS SELECT DISTINCT project FROM members;

-- The audit log of users, tokens and members. Rows are never deleted.
CREATE TABLE account_events (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    actor     TEXT    NOT NULL,
    action    TEXT    NOT NULL,
    user_name TEXT    NOT NULL,
    detail    TEXT    NOT NULL
) STRICT;
