-- How often prompts were handed out to clients, and when clients were last seen. Not in the change log: it is counted on a
-- best-effort basis. `prompt` is the id of a stored prompt or the name of a library prompt, which contains a colon. The
-- row with an empty client is the sum of the others.
CREATE TABLE prompt_uses (
    project INTEGER NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    prompt  TEXT    NOT NULL,
    client  TEXT    NOT NULL,
    count   INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (project, prompt, client)
) STRICT, WITHOUT ROWID;

CREATE INDEX most_used_prompts ON prompt_uses (project, count, last_at) WHERE client = '';

-- `user_name` is empty where there is no authentication.
CREATE TABLE seen_clients (
    user_name TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    version   TEXT    NOT NULL,
    transport TEXT    NOT NULL,
    last_at   INTEGER NOT NULL,
    PRIMARY KEY (user_name, name, transport)
) STRICT, WITHOUT ROWID;
