-- Sessions of HTTP clients, stored so that any process can continue them. They are not user data, and not in the
-- change log.
CREATE TABLE sessions (
    id      text   COLLATE "C" PRIMARY KEY,
    state   bytea  NOT NULL,
    used_at bigint NOT NULL
);

CREATE INDEX sessions_used_at ON sessions (used_at);
