-- Users, tokens and members of projects. They are not in the change log: nothing of them may be undone, see
-- docs/decisions/0010.
CREATE TABLE users (
    name        TEXT    PRIMARY KEY,
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER
) STRICT, WITHOUT ROWID;

-- Names are ASCII, and no two of them differ in case only.
CREATE UNIQUE INDEX users_in_any_case ON users (lower(name));

-- Of a token itself only the hash is kept, in hexadecimal digits.
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

-- A project without members is everybody's. Those of a deleted project stay: should it come back, it comes back to
-- them only.
CREATE TABLE members (
    project   INTEGER NOT NULL,
    user_name TEXT    NOT NULL REFERENCES users (name),
    role      TEXT    NOT NULL CHECK (role IN ('read', 'write')),
    PRIMARY KEY (project, user_name)
) STRICT, WITHOUT ROWID;

-- What was done to all of these, by whom. Nothing is ever taken out of it.
CREATE TABLE account_events (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    actor     TEXT    NOT NULL,
    action    TEXT    NOT NULL,
    user_name TEXT    NOT NULL,
    detail    TEXT    NOT NULL
) STRICT;
