-- Idempotency keys, so that a call that is sent again does not run again. `owner` is the user; it is empty where there is
-- no authentication. `digest` is a hash of the request. `first_seq` and `last_seq` are the changes that the call made.
CREATE TABLE idempotency_keys (
    owner     text   COLLATE "C" NOT NULL,
    key       text   COLLATE "C" NOT NULL,
    digest    bytea  NOT NULL,
    at        bigint NOT NULL,
    first_seq bigint,
    last_seq  bigint,
    result    bytea,
    PRIMARY KEY (owner, key)
);

CREATE INDEX idempotency_keys_by_time ON idempotency_keys (at);

-- Row-level security, see docs/decisions/0012. The setting dittybag.viewer holds the viewer: user:NAME, or an empty
-- string for the operator, who sees all rows.

-- The user name of the viewer; NULL for the operator.
CREATE FUNCTION viewer() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN current_setting('dittybag.viewer', true) NOT IN ('', '*')
                THEN substr(current_setting('dittybag.viewer', true), 6) END
$$;

-- Whether the connection belongs to the operator permanently: then the setting is *. The planner evaluates this once, so
-- on such a connection the policies cost nothing and searches use their indexes. That is why it is declared IMMUTABLE,
-- although it is not: a connection whose setting is * must never serve another viewer.
CREATE FUNCTION is_operator_connection() RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(current_setting('dittybag.viewer', true) = '*', false)
$$;

-- The projects that have members, and are therefore visible only to them. All users can read this table.
CREATE TABLE restricted_projects (
    project bigint PRIMARY KEY
);

INSERT INTO restricted_projects SELECT DISTINCT project FROM members;

CREATE FUNCTION update_restricted_projects() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        EXECUTE format('INSERT INTO %I.restricted_projects VALUES ($1) ON CONFLICT DO NOTHING', TG_TABLE_SCHEMA)
        USING NEW.project;
    ELSE
        EXECUTE format('DELETE FROM %1$I.restricted_projects WHERE project = $1
                        AND NOT EXISTS (SELECT FROM %1$I.members WHERE project = $1)', TG_TABLE_SCHEMA)
        USING OLD.project;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER members_restrict_projects AFTER INSERT OR DELETE ON members
FOR EACH ROW EXECUTE FUNCTION update_restricted_projects();

-- Which projects use or used each row of `contents`. Rows are never deleted: the change log refers to old contents.
CREATE TABLE content_uses (
    sha256  text   COLLATE "C" NOT NULL,
    project bigint NOT NULL,
    PRIMARY KEY (sha256, project)
);

INSERT INTO content_uses
SELECT sha256, project FROM resources
UNION
SELECT state::json ->> 'sha256', project
FROM changes, LATERAL (VALUES (before), (after)) AS states (state)
WHERE kind = 'resource' AND state IS NOT NULL;

CREATE FUNCTION record_content_use() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO %I.content_uses VALUES ($1, $2) ON CONFLICT DO NOTHING', TG_TABLE_SCHEMA)
    USING NEW.sha256, NEW.project;
    RETURN NULL;
END
$$;

CREATE TRIGGER resources_use_contents AFTER INSERT OR UPDATE OF sha256, project ON resources
FOR EACH ROW EXECUTE FUNCTION record_content_use();

-- FORCE is needed because the role that runs the queries owns the tables.
DO $$
DECLARE
    table_name text;
    rule       record;
BEGIN
    FOREACH table_name IN ARRAY ARRAY[
        'projects', 'prompts', 'resources', 'contents', 'content_uses', 'tasks', 'changes', 'sessions',
        'users', 'tokens', 'members', 'account_events', 'idempotency_keys'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', table_name);
        EXECUTE format('CREATE POLICY operator ON %I USING (is_operator_connection() OR (SELECT viewer()) IS NULL)',
                       table_name);
    END LOOP;

    -- Rows that belong to a user, and the commands that the policy allows on them.
    FOR rule IN SELECT * FROM (VALUES
        ('tasks', 'user', 'ALL'), ('idempotency_keys', 'owner', 'ALL'), ('users', 'name', 'SELECT'),
        ('tokens', 'user_name', 'SELECT'), ('members', 'user_name', 'SELECT'), ('account_events', 'user_name', 'SELECT')
    ) AS rules (name, owner, command) LOOP
        EXECUTE format('CREATE POLICY own ON %I FOR %s USING (%I = (SELECT viewer()))',
                       rule.name, rule.command, rule.owner);
    END LOOP;

    -- Rows of a project that is not restricted, or that the user is a member of.
    FOR rule IN SELECT * FROM (VALUES
        ('projects', 'id', ''), ('prompts', 'project', ''), ('resources', 'project', ''), ('content_uses', 'project', ''),
        ('changes', 'project', 'kind <> ''task'' AND')
    ) AS rules (name, project, condition) LOOP
        EXECUTE format(
            'CREATE POLICY shared ON %1$I USING (%3$s (
                 NOT EXISTS (SELECT FROM restricted_projects AS restricted WHERE restricted.project = %1$I.%2$I)
                 OR EXISTS (SELECT FROM members WHERE members.project = %1$I.%2$I AND user_name = (SELECT viewer()))))',
            rule.name, rule.project, rule.condition);
    END LOOP;
END
$$;

CREATE POLICY own ON changes USING (
    CASE kind WHEN 'task' THEN coalesce(after, before)::json ->> 'user' = (SELECT viewer()) ELSE false END
);

-- Content is inserted before the resource that uses it.
CREATE POLICY new ON contents FOR INSERT WITH CHECK (true);
CREATE POLICY shared ON contents FOR SELECT USING (
    EXISTS (SELECT FROM content_uses WHERE content_uses.sha256 = contents.sha256)
);
