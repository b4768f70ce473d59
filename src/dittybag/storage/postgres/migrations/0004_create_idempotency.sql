-- Answers to calls that came with an idempotency key, so that none of them is carried out twice. `owner` is the user,
-- and empty for whoever acts where nobody is asked who they are. `first` and `last` are the changes of the call.
CREATE TABLE answers (
    owner  text   COLLATE "C" NOT NULL,
    key    text   COLLATE "C" NOT NULL,
    digest bytea  NOT NULL,
    at     bigint NOT NULL,
    first  bigint,
    last   bigint,
    answer bytea,
    PRIMARY KEY (owner, key)
);

CREATE INDEX answers_by_time ON answers (at);

-- Row-level security, see docs/decisions/0012. Who is looking stands in the setting dittybag.viewer: user:NAME, or
-- nothing for the operator, who sees everything.

-- The name of whoever is looking; NULL for the operator.
CREATE FUNCTION viewer() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN current_setting('dittybag.viewer', true) NOT IN ('', '*')
                THEN substr(current_setting('dittybag.viewer', true), 6) END
$$;

-- Whether a connection is the operator's for good, which says * and never anything else. That is decided when a query is
-- planned, so such a connection pays nothing for the policies, and searches keep their indexes. Hence IMMUTABLE, although
-- it is not: whoever sets * must not let anybody else look through the same connection.
CREATE FUNCTION only_operator() RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(current_setting('dittybag.viewer', true) = '*', false)
$$;

-- The projects that have members, and so are not everybody's. Those who may not see the members may know that much.
CREATE TABLE closed_projects (
    project bigint PRIMARY KEY
);

INSERT INTO closed_projects SELECT DISTINCT project FROM members;

CREATE FUNCTION close_or_open_project() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        EXECUTE format('INSERT INTO %I.closed_projects VALUES ($1) ON CONFLICT DO NOTHING', TG_TABLE_SCHEMA)
        USING NEW.project;
    ELSE
        EXECUTE format('DELETE FROM %1$I.closed_projects WHERE project = $1
                        AND NOT EXISTS (SELECT FROM %1$I.members WHERE project = $1)', TG_TABLE_SCHEMA)
        USING OLD.project;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER members_close_projects AFTER INSERT OR DELETE ON members
FOR EACH ROW EXECUTE FUNCTION close_or_open_project();

-- In which projects bytes are or were. What one project has forgotten its log still has, so nothing is taken out.
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

CREATE FUNCTION note_content_use() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO %I.content_uses VALUES ($1, $2) ON CONFLICT DO NOTHING', TG_TABLE_SCHEMA)
    USING NEW.sha256, NEW.project;
    RETURN NULL;
END
$$;

CREATE TRIGGER resources_use_contents AFTER INSERT OR UPDATE OF sha256, project ON resources
FOR EACH ROW EXECUTE FUNCTION note_content_use();

-- Forced, because the role that made the tables is the one that asks.
DO $$
DECLARE
    guarded text;
    place   record;
BEGIN
    FOREACH guarded IN ARRAY ARRAY[
        'projects', 'prompts', 'resources', 'contents', 'content_uses', 'tasks', 'changes', 'sessions',
        'users', 'tokens', 'members', 'account_events', 'answers'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', guarded);
        EXECUTE format('CREATE POLICY operator ON %I USING (only_operator() OR (SELECT viewer()) IS NULL)', guarded);
    END LOOP;

    -- What belongs to a user, and what a user may do with it.
    FOR place IN SELECT * FROM (VALUES
        ('tasks', 'user', 'ALL'), ('answers', 'owner', 'ALL'), ('users', 'name', 'SELECT'),
        ('tokens', 'user_name', 'SELECT'), ('members', 'user_name', 'SELECT'), ('account_events', 'user_name', 'SELECT')
    ) AS places (name, owner, deeds) LOOP
        EXECUTE format('CREATE POLICY own ON %I FOR %s USING (%I = (SELECT viewer()))',
                       place.name, place.deeds, place.owner);
    END LOOP;

    -- What is in a project that is everybody's, or that the user is a member of.
    FOR place IN SELECT * FROM (VALUES
        ('projects', 'id', ''), ('prompts', 'project', ''), ('resources', 'project', ''), ('content_uses', 'project', ''),
        ('changes', 'project', 'kind <> ''task'' AND')
    ) AS places (name, project, narrowed) LOOP
        EXECUTE format(
            'CREATE POLICY shared ON %1$I USING (%3$s (
                 NOT EXISTS (SELECT FROM closed_projects AS closed WHERE closed.project = %1$I.%2$I)
                 OR EXISTS (SELECT FROM members WHERE members.project = %1$I.%2$I AND user_name = (SELECT viewer()))))',
            place.name, place.project, place.narrowed);
    END LOOP;
END
$$;

CREATE POLICY own ON changes USING (
    CASE kind WHEN 'task' THEN coalesce(after, before)::json ->> 'user' = (SELECT viewer()) ELSE false END
);

-- New bytes are there before the resource that uses them.
CREATE POLICY new ON contents FOR INSERT WITH CHECK (true);
CREATE POLICY shared ON contents FOR SELECT USING (
    EXISTS (SELECT FROM content_uses WHERE content_uses.sha256 = contents.sha256)
);
