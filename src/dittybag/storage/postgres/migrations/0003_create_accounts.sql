-- Users, tokens and members of projects. They are not in the change log: nothing of them may be undone, see
-- docs/decisions/0010.
CREATE TABLE users (
    name        text   COLLATE "C" PRIMARY KEY,
    created_at  bigint NOT NULL,
    disabled_at bigint
);

-- Names are ASCII, and no two of them differ in case only.
CREATE UNIQUE INDEX users_in_any_case ON users (lower(name));

-- Of a token itself only the hash is kept, in hexadecimal digits.
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

-- A project without members is everybody's. Those of a deleted project stay: should it come back, it comes back to
-- them only.
CREATE TABLE members (
    project   bigint NOT NULL,
    user_name text   COLLATE "C" NOT NULL REFERENCES users (name),
    role      text   COLLATE "C" NOT NULL CHECK (role IN ('read', 'write')),
    PRIMARY KEY (project, user_name)
);

-- What was done to all of these, by whom. Nothing is ever taken out of it.
CREATE TABLE account_events (
    number    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        bigint NOT NULL,
    actor     text   COLLATE "C" NOT NULL,
    action    text   COLLATE "C" NOT NULL,
    user_name text   COLLATE "C" NOT NULL,
    detail    text   COLLATE "C" NOT NULL
);
