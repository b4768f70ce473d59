-- How often prompts were handed out to clients, and when clients were last seen. Not in the change log: it is counted on a
-- best-effort basis. `prompt` is the id of a stored prompt or the name of a library prompt, which contains a colon. The
-- row with an empty client is the sum of the others.
CREATE TABLE prompt_uses (
    project bigint NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    prompt  text   COLLATE "C" NOT NULL,
    client  text   COLLATE "C" NOT NULL,
    count   bigint NOT NULL,
    last_at bigint NOT NULL,
    PRIMARY KEY (project, prompt, client)
);

CREATE INDEX most_used_prompts ON prompt_uses (project, count, last_at) WHERE client = '';

-- `user_name` is empty where there is no authentication.
CREATE TABLE seen_clients (
    user_name text   COLLATE "C" NOT NULL,
    name      text   COLLATE "C" NOT NULL,
    version   text   COLLATE "C" NOT NULL,
    transport text   COLLATE "C" NOT NULL,
    last_at   bigint NOT NULL,
    PRIMARY KEY (user_name, name, transport)
);

-- Row-level security, see 0004_create_idempotency.sql. Servers write as the operator.
ALTER TABLE prompt_uses ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY operator ON prompt_uses USING (is_operator_connection() OR (SELECT viewer()) IS NULL);
CREATE POLICY shared ON prompt_uses FOR SELECT USING (
    NOT EXISTS (SELECT FROM restricted_projects AS restricted WHERE restricted.project = prompt_uses.project)
    OR EXISTS (SELECT FROM members WHERE members.project = prompt_uses.project AND user_name = (SELECT viewer()))
);

ALTER TABLE seen_clients ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY operator ON seen_clients USING (is_operator_connection() OR (SELECT viewer()) IS NULL);
CREATE POLICY own ON seen_clients FOR SELECT USING (user_name = (SELECT viewer()));
