-- What is pinned to a project, in order: prompt:ID, resource:ID, task:ID or library:NAME.
ALTER TABLE projects ADD COLUMN pins text[] COLLATE "C" NOT NULL DEFAULT '{}';

-- See 0012_write_in_one_call.sql; a project has pins now.
-- Makes one write. Returns whether it fits: the row had the version, or the unique values of a new row were free, which is
-- left to the unique indexes because the planner may choose another index for a query. `state` is the state after it as in
-- the change log, NULL to delete the row. `others` has the columns that are not in the state.
CREATE OR REPLACE FUNCTION write_row(row_kind text, row_number bigint, row_version bigint, state text, others text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    CASE row_kind
    WHEN 'prompt' THEN
        IF state IS NULL THEN
            DELETE FROM prompts WHERE number = row_number AND version = row_version;
        ELSIF row_version = 0 THEN
            INSERT INTO prompts (
                number, id, project, name, title, description, content, tags, arguments, created_at, updated_at, version,
                folded_title, folded_content, words, word_count)
            SELECT
                number, id, project, name, title, description, content, tags, arguments, created_at, updated_at, version,
                folded_title, folded_content, words, word_count
            FROM json_populate_record(json_populate_record(NULL::prompts, state::json), others::json)
            ON CONFLICT DO NOTHING;
        ELSE
            UPDATE prompts SET (
                number, id, project, name, title, description, content, tags, arguments, created_at, updated_at, version,
                folded_title, folded_content, words, word_count
            ) = (SELECT
                number, id, project, name, title, description, content, tags, arguments, created_at, updated_at, version,
                folded_title, folded_content, words, word_count
            FROM json_populate_record(json_populate_record(NULL::prompts, state::json), others::json))
            WHERE number = row_number AND version = row_version;
        END IF;
    WHEN 'resource' THEN
        IF state IS NULL THEN
            DELETE FROM resources WHERE number = row_number AND version = row_version;
        ELSIF row_version = 0 THEN
            INSERT INTO resources (
                number, id, project, name, uri, uri_digest, title, description, mime_type, is_text, is_template, sha256,
                size, created_at, updated_at, version, folded_title, folded_content, words, word_count)
            SELECT
                number, id, project, name, uri, uri_digest, title, description, mime_type, is_text, is_template, sha256,
                size, created_at, updated_at, version, folded_title, folded_content, words, word_count
            FROM json_populate_record(json_populate_record(NULL::resources, state::json), others::json)
            ON CONFLICT DO NOTHING;
        ELSE
            UPDATE resources SET (
                number, id, project, name, uri, uri_digest, title, description, mime_type, is_text, is_template, sha256,
                size, created_at, updated_at, version, folded_title, folded_content, words, word_count
            ) = (SELECT
                number, id, project, name, uri, uri_digest, title, description, mime_type, is_text, is_template, sha256,
                size, created_at, updated_at, version, folded_title, folded_content, words, word_count
            FROM json_populate_record(json_populate_record(NULL::resources, state::json), others::json))
            WHERE number = row_number AND version = row_version;
        END IF;
    WHEN 'task' THEN
        IF state IS NULL THEN
            DELETE FROM tasks WHERE id = row_number AND version = row_version;
        ELSIF row_version = 0 THEN
            INSERT INTO tasks (
                id, "user", title, project, priority, energy, time_estimate, notes, due_date, completed_at, created_at,
                updated_at, version, status, project_id, blocked_by, parent, assignee, labels, links, comments,
                folded_title, folded_notes, words, word_count)
            SELECT
                row_number, "user", title, project, priority, energy, time_estimate, notes, due_date, completed_at, created_at,
                updated_at, version, status, project_id, blocked_by, parent, assignee, labels, links, comments,
                folded_title, folded_notes, words, word_count
            FROM json_populate_record(NULL::tasks, others::json)
            ON CONFLICT DO NOTHING;
        ELSE
            UPDATE tasks SET (
                "user", title, project, priority, energy, time_estimate, notes, due_date, completed_at, created_at,
                updated_at, version, status, project_id, blocked_by, parent, assignee, labels, links, comments,
                folded_title, folded_notes, words, word_count
            ) = (SELECT
                "user", title, project, priority, energy, time_estimate, notes, due_date, completed_at, created_at,
                updated_at, version, status, project_id, blocked_by, parent, assignee, labels, links, comments,
                folded_title, folded_notes, words, word_count
            FROM json_populate_record(NULL::tasks, others::json))
            WHERE id = row_number AND version = row_version;
        END IF;
    WHEN 'project' THEN
        IF state IS NULL THEN
            DELETE FROM projects WHERE id = row_number AND version = row_version;
        ELSIF row_version = 0 THEN
            INSERT INTO projects (id, name, created_at, updated_at, version, pins)
            SELECT id, name, created_at, updated_at, version, coalesce(pins, '{}')
            FROM json_populate_record(NULL::projects, state::json)
            ON CONFLICT DO NOTHING;
        ELSE
            UPDATE projects SET (name, created_at, updated_at, version, pins) = (
                SELECT name, created_at, updated_at, version, coalesce(pins, '{}')
                FROM json_populate_record(NULL::projects, state::json))
            WHERE id = row_number AND version = row_version;
        END IF;
    END CASE;
    RETURN FOUND;
END
$$;
