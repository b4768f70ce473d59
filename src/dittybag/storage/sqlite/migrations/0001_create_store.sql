-- Times are microseconds since 1970, UTC. Ids and numbers are never reused after deletion: the number of a prompt
-- or resource is the `seq` of the change that created it.

CREATE TABLE projects (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version    INTEGER NOT NULL
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
    folded_notes  TEXT
) STRICT;

CREATE INDEX tasks_in_order ON tasks (user, priority DESC, id, completed_at);
CREATE INDEX tasks_by_project ON tasks (user, project, priority DESC, id, completed_at);

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
    CHECK (before IS NOT NULL OR after IS NOT NULL)
) STRICT;

-- Changes that create a prompt or resource are not indexed: their `seq` is the number of the entity.
CREATE INDEX changes_by_entity ON changes (kind, entity, seq)
    WHERE action <> 'create' OR kind IN ('project', 'task');

-- Trigram indexes for search. They yield candidates, which each query compares with the text itself. The writer
-- maintains them, not triggers, see docs/decisions/0005. Segments are merged incrementally: merging all of them at once
-- would block a writer for most of a second.
CREATE VIRTUAL TABLE prompt_index USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);
INSERT INTO prompt_index (prompt_index, rank) VALUES ('automerge', 16), ('crisismerge', 64);
CREATE VIRTUAL TABLE resource_index USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);
INSERT INTO resource_index (resource_index, rank) VALUES ('automerge', 16), ('crisismerge', 64);
CREATE VIRTUAL TABLE task_index USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);
INSERT INTO task_index (task_index, rank) VALUES ('automerge', 16), ('crisismerge', 64);
