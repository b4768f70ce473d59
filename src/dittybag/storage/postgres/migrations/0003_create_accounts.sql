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

INSERT INTO counters VALUES ('tokens', 0);

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
