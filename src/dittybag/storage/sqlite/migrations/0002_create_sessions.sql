-- Sessions of HTTP clients, stored so that any process can continue them. They are not user data, and not in the
-- change log.
CREATE TABLE sessions (
    id      TEXT    PRIMARY KEY,
    state   BLOB    NOT NULL,
    used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_used_at ON sessions (used_at);
