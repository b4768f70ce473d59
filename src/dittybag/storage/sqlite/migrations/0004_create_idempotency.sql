-- Idempotency keys, so that a call that is sent again does not run again. `owner` is the user; it is empty where there is
-- no authentication. `digest` is a hash of the request. `first_seq` and `last_seq` are the changes that the call made.
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
