-- Sessions of clients that speak over HTTP, so that any process can go on with them. They are nobody's data, and
-- not in the change log.
CREATE TABLE sessions (
    id      TEXT    PRIMARY KEY,
    state   BLOB    NOT NULL,
    used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_used_at ON sessions (used_at);
