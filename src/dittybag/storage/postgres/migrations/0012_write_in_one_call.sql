-- A batch of writes is made by one call of a function, which is also its transaction, see docs/decisions/0029. The functions
-- that the program calls set the search path; those that they call inherit it.

-- What the last commit of a writer made, in case the response to the call is lost. NULL if the writer has given up this
-- commit: then a call that arrives late must not make it.
ALTER TABLE writers ADD COLUMN results bigint[];

-- Servers merge the lists of new entries of these indexes between writes, so a list can be longer.
ALTER INDEX prompts_words SET (gin_pending_list_limit = 32768);
ALTER INDEX resources_words SET (gin_pending_list_limit = 32768);
ALTER INDEX tasks_words SET (gin_pending_list_limit = 32768);
ALTER INDEX IF EXISTS prompts_trigrams SET (gin_pending_list_limit = 32768);
ALTER INDEX IF EXISTS tasks_trigrams SET (gin_pending_list_limit = 32768);

-- Waits for the writers' lock, and sets what the transaction of a write needs whatever the settings of the session: each
-- statement sees what was committed before it, and the commit is on disk before the response. The viewer is the operator.
CREATE FUNCTION lock_writers(lock_class integer, lock_key integer, milliseconds integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'writers need the isolation level read committed';
    END IF;
    PERFORM set_config('dittybag.viewer', '', true), set_config('lock_timeout', milliseconds::text, true);
    IF current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM pg_advisory_xact_lock(lock_class, lock_key);
END
$$;

-- Records a commit of a writer; with NULL as `made`, that it was given up.
CREATE FUNCTION record_commit(writer uuid, commit_number bigint, made bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    now_at bigint := extract(epoch FROM clock_timestamp()) * 1000000;
BEGIN
    IF commit_number = 1 THEN
        -- Records of processes that ended long ago.
        DELETE FROM writers WHERE at < now_at - 7 * 24 * 3600 * 1000000::bigint;
    END IF;
    INSERT INTO writers (id, last, at, results) VALUES (writer, commit_number, now_at, made)
    ON CONFLICT (id) DO UPDATE SET last = excluded.last, at = excluded.at, results = excluded.results;
END
$$;

-- Returns what a commit made whose response was lost. If it was not made, returns NULL and gives it up, so that it never is.
CREATE FUNCTION settle_commit(writer uuid, commit_number bigint, lock_class integer, lock_key integer) RETURNS bigint[]
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    found writers;
BEGIN
    PERFORM lock_writers(lock_class, lock_key, 4000);
    SELECT * INTO found FROM writers WHERE id = writer;
    IF found.last >= commit_number THEN
        RETURN found.results;
    END IF;
    PERFORM record_commit(writer, commit_number, NULL);
    RETURN NULL;
END
$$;

-- Makes one write. Returns whether it fits: the row had the version, or the unique values of a new row were free, which is
-- left to the unique indexes because the planner may choose another index for a query. `state` is the state after it as in
-- the change log, NULL to delete the row. `others` has the columns that are not in the state.
CREATE FUNCTION write_row(row_kind text, row_number bigint, row_version bigint, state text, others text) RETURNS boolean
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
            INSERT INTO projects (id, name, created_at, updated_at, version)
            SELECT id, name, created_at, updated_at, version FROM json_populate_record(NULL::projects, state::json)
            ON CONFLICT DO NOTHING;
        ELSE
            UPDATE projects SET (name, created_at, updated_at, version) = (
                SELECT name, created_at, updated_at, version FROM json_populate_record(NULL::projects, state::json))
            WHERE id = row_number AND version = row_version;
        END IF;
    END CASE;
    RETURN FOUND;
END
$$;

-- Takes the next number of a table with numbers of its own, or the given one if it is not 0.
CREATE FUNCTION take_number(row_kind text, given bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    taken bigint;
BEGIN
    UPDATE counters SET last = greatest(last + (given = 0)::int, given) WHERE name = row_kind || 's'
    RETURNING CASE WHEN given = 0 THEN last ELSE given END INTO taken;
    RETURN taken;
END
$$;

-- Puts the number of a new row into its state, which begins with {"number":0 or {"id":0.
CREATE FUNCTION numbered_state(state text, row_number bigint) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE WHEN starts_with(state, '{"number":0,') THEN '{"number":' || row_number || substr(state, 12)
                WHEN starts_with(state, '{"id":0,') THEN '{"id":' || row_number || substr(state, 8)
                ELSE state END;
END
$$;

-- Counts the new prompts with numbers greater than this.
CREATE FUNCTION count_new_prompts(last_number bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO prompt_counts SELECT project, count(*) FROM prompts WHERE number > last_number GROUP BY project
        ON CONFLICT (project) DO UPDATE SET count = prompt_counts.count + excluded.count;
    INSERT INTO tag_counts
        SELECT project, tag, count(*) FROM prompts, unnest(tags) AS tag WHERE number > last_number GROUP BY project, tag
        ON CONFLICT (project, tag) DO UPDATE SET count = tag_counts.count + excluded.count;
END
$$;

-- Counts the prompts that writes have created, whatever later writes have made of them: these are counted by triggers.
CREATE FUNCTION count_created_prompts(kinds text[], versions bigint[], states text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    viewer  text := coalesce(current_setting('dittybag.viewer', true), '');
    created prompts[];
BEGIN
    SELECT array_agg(json_populate_record(NULL::prompts, state::json)) INTO created
    FROM unnest(kinds, versions, states) AS written (kind, version, state) WHERE kind = 'prompt' AND version = 0;
    IF created IS NULL THEN
        RETURN;
    END IF;
    PERFORM set_config('dittybag.viewer', '', true);
    INSERT INTO prompt_counts SELECT project, count(*) FROM unnest(created) GROUP BY project
        ON CONFLICT (project) DO UPDATE SET count = prompt_counts.count + excluded.count;
    INSERT INTO tag_counts SELECT project, tag, count(*) FROM unnest(created), unnest(tags) AS tag GROUP BY project, tag
        ON CONFLICT (project, tag) DO UPDATE SET count = tag_counts.count + excluded.count;
    -- A count of 0 has no row.
    DELETE FROM prompt_counts WHERE count = 0 AND project IN (SELECT project FROM unnest(created));
    DELETE FROM tag_counts
    WHERE count = 0 AND (project, tag) IN (SELECT project, tag FROM unnest(created), unnest(tags) AS tag);
    PERFORM set_config('dittybag.viewer', viewer, true);
END
$$;

-- Makes the writes of several use cases and commits them: each of them as a whole, or not at all if what it has read no
-- longer holds. Returns the schema version, the `seq` of the last change, the `seq` of the first change of each use case,
-- 0 if it was left out, and the number of each written row. Nothing is written if the schema has another version.
CREATE FUNCTION commit_writes(
    writer uuid, commit_number bigint, lock_class integer, lock_key integer, channel text, known_schema bigint,
    -- Of each use case. Without an idempotency key, its key is NULL.
    viewers text[], actors text[], interfaces text[], times bigint[],
    key_owners text[], keys text[], digests bytea[], valid_since bigint[],
    project_counts integer[], content_counts integer[], write_counts integer[],
    -- The projects that use cases have read, and their versions.
    known_projects bigint[], known_versions bigint[],
    -- New contents of resources.
    hashes text[], contents bytea[],
    -- Writes. Of a new row, the version is 0, and the number too.
    actions text[], kinds text[], numbers bigint[], versions bigint[], entities text[], projects bigint[],
    befores text[], afters text[], more_columns text[]
) RETURNS bigint[] LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    current_schema_version bigint;
    old_seq                bigint;
    last_seq               bigint;
    first_seq              bigint;
    row_number             bigint;
    state                  text;
    viewer                 text;
    project_end            integer;
    content_end            integer;
    write_end              integer;
    is_left_out            boolean[] := array_fill(false, ARRAY[cardinality(viewers)]);
    first_seqs             bigint[];
    row_numbers            bigint[];
    made                   bigint[];
    counts_later           boolean;
    -- The use case that is being made; after all of them, 0.
    job                    integer := 1;
BEGIN
    PERFORM lock_writers(lock_class, lock_key, 4000);
    IF EXISTS (SELECT FROM writers WHERE id = writer AND last >= commit_number) THEN
        RAISE EXCEPTION 'the writer has given up commit %', commit_number;
    END IF;
    SELECT coalesce(max(number), 0) INTO current_schema_version FROM migrations;
    IF current_schema_version <> known_schema THEN
        RETURN ARRAY[current_schema_version];
    END IF;
    SELECT coalesce(max(seq), 0) INTO old_seq FROM changes;

    counts_later := cardinality(kinds) > 3;
    IF counts_later THEN
        PERFORM set_config('dittybag.counts', 'later', true);
    END IF;
    -- Nearly always, all fit. If a write does not, all are undone, and made again without its use case: a savepoint for
    -- each use case would take longer than its writes, because each locks the row of its project.
    WHILE job > 0 LOOP
        last_seq := old_seq;
        viewer := '';
        project_end := 0;
        content_end := 0;
        write_end := 0;
        first_seqs := '{}';
        row_numbers := numbers;
        PERFORM set_config('dittybag.viewer', viewer, true);
        BEGIN
            job := 1;
            WHILE job <= cardinality(viewers) LOOP
                IF viewers[job] <> viewer THEN
                    viewer := viewers[job];
                    PERFORM set_config('dittybag.viewer', viewer, true);
                END IF;
                FOR i IN project_end + 1 .. project_end + project_counts[job] LOOP
                    EXIT WHEN is_left_out[job];
                    is_left_out[job] := NOT EXISTS (
                        SELECT FROM projects AS read WHERE read.id = known_projects[i] AND read.version = known_versions[i]);
                END LOOP;
                IF keys[job] IS NOT NULL AND NOT is_left_out[job] THEN
                    is_left_out[job] := EXISTS (
                        SELECT FROM idempotency_keys AS used
                        WHERE used.owner = key_owners[job] AND used.key = keys[job] AND used.at > valid_since[job]);
                END IF;
                first_seq := CASE WHEN is_left_out[job] THEN 0 ELSE last_seq + 1 END;
                IF NOT is_left_out[job] THEN
                    FOR i IN content_end + 1 .. content_end + content_counts[job] LOOP
                        INSERT INTO contents (sha256, bytes) VALUES (hashes[i], contents[i]) ON CONFLICT DO NOTHING;
                    END LOOP;
                    FOR i IN write_end + 1 .. write_end + write_counts[job] LOOP
                        last_seq := last_seq + 1;
                        row_number := numbers[i];
                        IF row_number = 0 THEN
                            row_number := CASE kinds[i] WHEN 'task' THEN take_number('task', 0) ELSE last_seq END;
                            row_numbers[i] := row_number;
                        END IF;
                        state := numbered_state(afters[i], row_number);
                        IF NOT write_row(kinds[i], row_number, versions[i], state, more_columns[i]) THEN
                            RAISE EXCEPTION 'write % does not fit', i USING ERRCODE = 'DBAG1';
                        END IF;
                        INSERT INTO changes (seq, batch, at, actor, action, kind, entity, project, before, after, interface)
                        VALUES (last_seq, first_seq, times[job], actors[job], actions[i], kinds[i],
                                coalesce(entities[i], row_number::text), projects[i], befores[i], state, interfaces[job]);
                    END LOOP;
                    IF keys[job] IS NOT NULL THEN
                        INSERT INTO idempotency_keys (owner, key, digest, at, first_seq, last_seq)
                        VALUES (key_owners[job], keys[job], digests[job], times[job], first_seq, last_seq)
                        ON CONFLICT (owner, key) DO UPDATE SET digest = excluded.digest, at = excluded.at,
                            first_seq = excluded.first_seq, last_seq = excluded.last_seq, result = NULL;
                    END IF;
                END IF;
                first_seqs := first_seqs || first_seq;
                project_end := project_end + project_counts[job];
                content_end := content_end + content_counts[job];
                write_end := write_end + write_counts[job];
                job := job + 1;
            END LOOP;
            job := 0;
        EXCEPTION WHEN unique_violation OR SQLSTATE 'DBAG1' THEN
            is_left_out[job] := true;
        END;
    END LOOP;

    -- The number of a new prompt is the `seq` of its change.
    IF counts_later AND EXISTS (
        SELECT FROM unnest(kinds, versions) AS written (kind, version) WHERE kind = 'prompt' AND version = 0) THEN
        PERFORM set_config('dittybag.viewer', '', true), count_new_prompts(old_seq);
    END IF;
    made := ARRAY[current_schema_version, last_seq] || first_seqs || row_numbers;
    -- If all were left out, there is nothing to commit.
    IF 0 < ANY (first_seqs) THEN
        PERFORM record_commit(writer, commit_number, made);
        PERFORM pg_notify(channel, last_seq::text);
    END IF;
    RETURN made;
END
$$;

-- Makes writes with their changes in a transaction that has the lock: those of a use case, or of the log of another
-- workspace. Returns the number of each written row. An error has the position of the write as its detail.
CREATE FUNCTION apply_changes(
    seqs bigint[], batches bigint[], times bigint[], actors text[], interfaces text[],
    actions text[], kinds text[], numbers bigint[], versions bigint[], entities text[], projects bigint[],
    befores text[], afters text[], more_columns text[]
) RETURNS bigint[] LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    place       integer;
    row_number  bigint;
    row_numbers bigint[] := '{}';
    states      text[]   := afters;
    setting     text     := coalesce(current_setting('dittybag.counts', true), '');
BEGIN
    -- A transaction with many calls would leave a dead version of the counts for each prompt, and each count reads them.
    PERFORM set_config('dittybag.counts', 'later', true);
    BEGIN
        FOR i IN 1 .. cardinality(seqs) LOOP
            place := i;
            row_number := numbers[i];
            IF versions[i] = 0 AND kinds[i] IN ('task', 'project') THEN
                row_number := take_number(kinds[i], row_number);
                IF numbers[i] = 0 THEN
                    states[i] := numbered_state(afters[i], row_number);
                END IF;
            END IF;
            IF NOT write_row(kinds[i], row_number, versions[i], states[i], more_columns[i]) THEN
                RAISE EXCEPTION 'write % does not fit', i
                USING ERRCODE = CASE versions[i] WHEN 0 THEN 'unique_violation' ELSE 'DBAG1' END;
            END IF;
            row_numbers := row_numbers || row_number;
        END LOOP;
    EXCEPTION WHEN integrity_constraint_violation OR SQLSTATE 'DBAG1' THEN
        RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM, DETAIL = place::text;
    END;
    PERFORM set_config('dittybag.counts', setting, true), count_created_prompts(kinds, versions, states);
    INSERT INTO changes (seq, batch, at, actor, action, kind, entity, project, before, after, interface)
    SELECT log.seq, log.batch, log.at, log.actor, log.action, log.kind, coalesce(log.entity, log.number::text),
           CASE log.kind WHEN 'project' THEN log.number ELSE log.project END, log.before, log.after, log.interface
    FROM unnest(seqs, batches, times, actors, actions, kinds, entities, row_numbers, projects, befores, states, interfaces)
      AS log (seq, batch, at, actor, action, kind, entity, number, project, before, after, interface);
    RETURN row_numbers;
END
$$;
