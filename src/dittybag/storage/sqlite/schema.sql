-- What all migrations lead to. Made by: python -m tests.storage.sqlite.schema

CREATE TABLE account_events (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    actor     TEXT    NOT NULL,
    action    TEXT    NOT NULL,
    user_name TEXT    NOT NULL,
    detail    TEXT    NOT NULL
) STRICT;

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

CREATE INDEX changes_by_entity ON changes (kind, entity, seq)
    WHERE action <> 'create' OR kind IN ('project', 'task');

CREATE TABLE contents (
    sha256 TEXT NOT NULL UNIQUE,
    bytes  BLOB NOT NULL
) STRICT;

CREATE TABLE idempotency_keys (
    owner     TEXT    NOT NULL,
    key       TEXT    NOT NULL,
    digest    BLOB    NOT NULL,
    at        INTEGER NOT NULL,
    first_seq INTEGER,
    last_seq  INTEGER,
    result    BLOB,
    PRIMARY KEY (owner, key)
) STRICT;

CREATE INDEX idempotency_keys_by_time ON idempotency_keys (at);

CREATE TABLE members (
    project   INTEGER NOT NULL,
    user_name TEXT    NOT NULL REFERENCES users (name),
    role      TEXT    NOT NULL CHECK (role IN ('read', 'write')),
    PRIMARY KEY (project, user_name)
) STRICT, WITHOUT ROWID;

CREATE TABLE migrations (
    number     INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE projects (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version    INTEGER NOT NULL
) STRICT;

CREATE VIRTUAL TABLE prompt_index USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);

CREATE TABLE prompt_tags (
    project    INTEGER NOT NULL,
    tag        TEXT    NOT NULL,
    updated_at INTEGER NOT NULL,
    prompt     INTEGER NOT NULL,
    PRIMARY KEY (project, tag, updated_at, prompt)
) STRICT, WITHOUT ROWID;

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

CREATE INDEX prompts_by_update ON prompts (project, updated_at, number);

CREATE INDEX prompts_in_order ON prompts (project, number);

CREATE TRIGGER prompt_tags_after_delete AFTER DELETE ON prompts WHEN old.tags <> '[]' BEGIN
    DELETE FROM prompt_tags
    WHERE (project, tag, updated_at, prompt) IN
          (SELECT old.project, value, old.updated_at, old.number FROM json_each(old.tags));
END;

CREATE TRIGGER prompt_tags_after_insert AFTER INSERT ON prompts WHEN new.tags <> '[]' BEGIN
    INSERT INTO prompt_tags SELECT new.project, value, new.updated_at, new.number FROM json_each(new.tags);
END;

CREATE TRIGGER prompt_tags_after_update
AFTER UPDATE ON prompts WHEN old.tags <> '[]' OR new.tags <> '[]' BEGIN
    DELETE FROM prompt_tags
    WHERE (project, tag, updated_at, prompt) IN
          (SELECT old.project, value, old.updated_at, old.number FROM json_each(old.tags));
    INSERT INTO prompt_tags SELECT new.project, value, new.updated_at, new.number FROM json_each(new.tags);
END;

CREATE VIRTUAL TABLE resource_index USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);

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

CREATE TABLE sessions (
    id      TEXT    PRIMARY KEY,
    state   BLOB    NOT NULL,
    used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_used_at ON sessions (used_at);

CREATE VIRTUAL TABLE task_index USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);

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

CREATE INDEX tasks_by_project ON tasks (user, project, priority DESC, id, completed_at);

CREATE INDEX tasks_in_order ON tasks (user, priority DESC, id, completed_at);

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

CREATE TABLE users (
    name        TEXT    PRIMARY KEY,
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX users_by_lower_name ON users (lower(name));
