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

-- The audit log of users, tokens and members. Rows are never deleted.
CREATE TABLE account_events (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    actor     TEXT    NOT NULL,
    action    TEXT    NOT NULL,
    user_name TEXT    NOT NULL,
    detail    TEXT    NOT NULL
) STRICT;
