-- The numbers of prompts, of prompts with each tag, and of resources of each MIME type are kept instead of counted:
-- counting a million takes as long as reading an index of them, see docs/decisions/0031. A count of 0 has no row.
-- Maintained by triggers. Writers hold a lock, so they do not wait for each other's counts.
CREATE TABLE prompt_counts (
    project bigint PRIMARY KEY,
    count   bigint NOT NULL
) WITH (fillfactor = 20);

CREATE TABLE tag_counts (
    project bigint NOT NULL,
    tag     text   COLLATE "C" NOT NULL,
    count   bigint NOT NULL,
    PRIMARY KEY (project, tag)
) WITH (fillfactor = 50);

CREATE TABLE resource_counts (
    project   bigint NOT NULL,
    mime_type text   COLLATE "C" NOT NULL,
    count     bigint NOT NULL,
    PRIMARY KEY (project, mime_type)
) WITH (fillfactor = 20);

INSERT INTO prompt_counts SELECT project, count(*) FROM prompts GROUP BY project;
INSERT INTO tag_counts SELECT project, tag, count(*) FROM prompts, unnest(tags) AS tag GROUP BY project, tag;
INSERT INTO resource_counts SELECT project, mime_type, count(*) FROM resources GROUP BY project, mime_type;

-- The triggers see all rows: who changes a prompt or resource sees its counts, and checking that again takes time. A
-- count is looked up by its key whatever the statistics say, so what has become 0 is deleted one by one.
CREATE FUNCTION change_prompt_counts() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    viewer     text    := coalesce(current_setting('dittybag.viewer', true), '');
    is_changed boolean := true;
    gone       record;
BEGIN
    PERFORM set_config('dittybag.viewer', '', true);
    IF TG_OP = 'DELETE' THEN
        INSERT INTO prompt_counts SELECT project, -count(*) FROM removed GROUP BY project
            ON CONFLICT (project) DO UPDATE SET count = prompt_counts.count + excluded.count;
        INSERT INTO tag_counts SELECT project, tag, -count(*) FROM removed, unnest(tags) AS tag GROUP BY project, tag
            ON CONFLICT (project, tag) DO UPDATE SET count = tag_counts.count + excluded.count;
    ELSIF EXISTS (SELECT FROM added JOIN removed USING (number)
                  WHERE added.tags <> removed.tags OR added.project <> removed.project) THEN
        INSERT INTO prompt_counts
            SELECT project, sum(change) FROM (
                SELECT project, 1 AS change FROM added UNION ALL SELECT project, -1 FROM removed) AS changes
            GROUP BY project HAVING sum(change) <> 0
            ON CONFLICT (project) DO UPDATE SET count = prompt_counts.count + excluded.count;
        INSERT INTO tag_counts
            SELECT project, tag, sum(change) FROM (
                SELECT project, unnest(tags) AS tag, 1 AS change FROM added
                UNION ALL SELECT project, unnest(tags), -1 FROM removed) AS changes
            GROUP BY project, tag HAVING sum(change) <> 0
            ON CONFLICT (project, tag) DO UPDATE SET count = tag_counts.count + excluded.count;
    ELSE
        -- Most updates change neither.
        is_changed := false;
    END IF;
    IF is_changed THEN
        FOR gone IN SELECT DISTINCT project FROM removed LOOP
            DELETE FROM prompt_counts WHERE project = gone.project AND count = 0;
        END LOOP;
        FOR gone IN SELECT DISTINCT project, unnest(tags) AS tag FROM removed LOOP
            DELETE FROM tag_counts WHERE project = gone.project AND tag = gone.tag AND count = 0;
        END LOOP;
    END IF;
    PERFORM set_config('dittybag.viewer', viewer, true);
    RETURN NULL;
END
$$;

-- Prompts are created one by one. A transaction that creates many sets dittybag.counts to later, and counts them itself.
CREATE FUNCTION count_new_prompt() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    viewer  text := coalesce(current_setting('dittybag.viewer', true), '');
    new_tag text;
BEGIN
    PERFORM set_config('dittybag.viewer', '', true);
    INSERT INTO prompt_counts VALUES (NEW.project, 1)
        ON CONFLICT (project) DO UPDATE SET count = prompt_counts.count + 1;
    FOREACH new_tag IN ARRAY NEW.tags LOOP
        INSERT INTO tag_counts VALUES (NEW.project, new_tag, 1)
            ON CONFLICT (project, tag) DO UPDATE SET count = tag_counts.count + 1;
    END LOOP;
    PERFORM set_config('dittybag.viewer', viewer, true);
    RETURN NULL;
END
$$;

CREATE TRIGGER prompt_counts_after_insert AFTER INSERT ON prompts FOR EACH ROW
WHEN (current_setting('dittybag.counts', true) IS DISTINCT FROM 'later') EXECUTE FUNCTION count_new_prompt();
CREATE TRIGGER prompt_counts_after_delete AFTER DELETE ON prompts REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION change_prompt_counts();
CREATE TRIGGER prompt_counts_after_update AFTER UPDATE ON prompts
REFERENCING NEW TABLE AS added OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION change_prompt_counts();

CREATE FUNCTION change_resource_counts() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    viewer text := coalesce(current_setting('dittybag.viewer', true), '');
    gone   record;
BEGIN
    PERFORM set_config('dittybag.viewer', '', true);
    IF TG_OP = 'INSERT' THEN
        INSERT INTO resource_counts SELECT project, mime_type, count(*) FROM added GROUP BY project, mime_type
            ON CONFLICT (project, mime_type) DO UPDATE SET count = resource_counts.count + excluded.count;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO resource_counts SELECT project, mime_type, -count(*) FROM removed GROUP BY project, mime_type
            ON CONFLICT (project, mime_type) DO UPDATE SET count = resource_counts.count + excluded.count;
    ELSE
        INSERT INTO resource_counts
            SELECT project, mime_type, sum(change) FROM (
                SELECT project, mime_type, 1 AS change FROM added
                UNION ALL SELECT project, mime_type, -1 FROM removed) AS changes
            GROUP BY project, mime_type HAVING sum(change) <> 0
            ON CONFLICT (project, mime_type) DO UPDATE SET count = resource_counts.count + excluded.count;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        FOR gone IN SELECT DISTINCT project, mime_type FROM removed LOOP
            DELETE FROM resource_counts
            WHERE project = gone.project AND mime_type = gone.mime_type AND count = 0;
        END LOOP;
    END IF;
    PERFORM set_config('dittybag.viewer', viewer, true);
    RETURN NULL;
END
$$;

CREATE TRIGGER resource_counts_after_insert AFTER INSERT ON resources REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION change_resource_counts();
CREATE TRIGGER resource_counts_after_delete AFTER DELETE ON resources REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION change_resource_counts();
CREATE TRIGGER resource_counts_after_update AFTER UPDATE ON resources
REFERENCING NEW TABLE AS added OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION change_resource_counts();

-- The projects that are hidden from the viewer, once for each statement.
CREATE FUNCTION hidden_projects() RETURNS bigint[] LANGUAGE sql STABLE PARALLEL SAFE SET search_path FROM CURRENT AS $$
    SELECT ARRAY(SELECT project FROM restricted_projects WHERE NOT EXISTS (
        SELECT FROM members WHERE members.project = restricted_projects.project AND user_name = viewer()))
$$;

-- A count is visible where the counted rows are. One policy without subqueries, which each write would prepare anew.
CREATE POLICY visible ON prompt_counts
USING (is_operator_connection() OR viewer() IS NULL OR project <> ALL ((SELECT hidden_projects())::bigint[]));
CREATE POLICY visible ON tag_counts
USING (is_operator_connection() OR viewer() IS NULL OR project <> ALL ((SELECT hidden_projects())::bigint[]));
CREATE POLICY visible ON resource_counts
USING (is_operator_connection() OR viewer() IS NULL OR project <> ALL ((SELECT hidden_projects())::bigint[]));
ALTER TABLE prompt_counts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE tag_counts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE resource_counts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

-- The resources of a project in each order of a list.
CREATE INDEX resources_by_update ON resources (project, updated_at, number);
CREATE INDEX resources_by_size ON resources (project, size, number);
CREATE INDEX resources_by_type ON resources (project, mime_type, name);

-- With the project, which the policies look at, the tasks of a user are counted without reading them. The same for the
-- tasks of projects, and for which of them wait.
DROP INDEX tasks_in_order;
DROP INDEX tasks_by_project;
CREATE INDEX tasks_in_order ON tasks ("user", priority DESC, id, completed_at, status, project_id);
CREATE INDEX tasks_by_project ON tasks ("user", project, priority DESC, id, completed_at, status, project_id);
CREATE INDEX shared_tasks_in_order ON tasks (priority DESC, id, completed_at, status, project_id, project, "user")
    WHERE project_id IS NOT NULL;
CREATE INDEX waiting_tasks ON open_tasks (task) WHERE waits_for > 0;

-- It is created again, also for the URIs of resources.
DROP INDEX IF EXISTS resources_trigrams;
