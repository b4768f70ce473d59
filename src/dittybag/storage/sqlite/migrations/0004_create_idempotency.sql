-- Answers to calls that came with an idempotency key, so that none of them is carried out twice. `owner` is the user,
-- and empty for whoever acts where nobody is asked who they are. `first` and `last` are the changes of the call.
CREATE TABLE answers (
    owner  TEXT    NOT NULL,
    key    TEXT    NOT NULL,
    digest BLOB    NOT NULL,
    at     INTEGER NOT NULL,
    first  INTEGER,
    last   INTEGER,
    answer BLOB,
    PRIMARY KEY (owner, key)
) STRICT;

CREATE INDEX answers_by_time ON answers (at);
