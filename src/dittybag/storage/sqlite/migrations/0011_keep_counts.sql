-- The numbers of prompts, and of prompts with each tag, are kept instead of counted: counting a million takes as long as
-- reading an index of them, see docs/decisions/0031. A count of 0 has no row. Maintained by triggers.
CREATE TABLE prompt_counts (
    project INTEGER PRIMARY KEY,
    count   INTEGER NOT NULL
) STRICT;
CREATE TABLE tag_counts (
    project INTEGER NOT NULL,
    tag     TEXT    NOT NULL,
    count   INTEGER NOT NULL,
    PRIMARY KEY (project, tag)
) STRICT, WITHOUT ROWID;

INSERT INTO prompt_counts SELECT project, count(*) FROM prompts GROUP BY project;
INSERT INTO tag_counts SELECT project, tag, count(*) FROM prompt_tags GROUP BY project, tag;

CREATE TRIGGER prompt_counts_after_insert AFTER INSERT ON prompts BEGIN
    INSERT INTO prompt_counts VALUES (new.project, 1) ON CONFLICT DO UPDATE SET count = count + 1;
END;

CREATE TRIGGER prompt_counts_after_delete AFTER DELETE ON prompts BEGIN
    UPDATE prompt_counts SET count = count - 1 WHERE project = old.project;
    DELETE FROM prompt_counts WHERE project = old.project AND count = 0;
END;

CREATE TRIGGER prompt_counts_after_update AFTER UPDATE ON prompts WHEN old.project <> new.project BEGIN
    UPDATE prompt_counts SET count = count - 1 WHERE project = old.project;
    DELETE FROM prompt_counts WHERE project = old.project AND count = 0;
    INSERT INTO prompt_counts VALUES (new.project, 1) ON CONFLICT DO UPDATE SET count = count + 1;
END;

CREATE TRIGGER tag_counts_after_insert AFTER INSERT ON prompts WHEN new.tags <> '[]' BEGIN
    INSERT INTO tag_counts SELECT new.project, value, 1 FROM json_each(new.tags) WHERE true
        ON CONFLICT DO UPDATE SET count = count + 1;
END;

CREATE TRIGGER tag_counts_after_delete AFTER DELETE ON prompts WHEN old.tags <> '[]' BEGIN
    UPDATE tag_counts SET count = count - 1
    WHERE project = old.project AND tag IN (SELECT value FROM json_each(old.tags));
    DELETE FROM tag_counts
    WHERE project = old.project AND tag IN (SELECT value FROM json_each(old.tags)) AND count = 0;
END;

CREATE TRIGGER tag_counts_after_update
AFTER UPDATE ON prompts WHEN old.tags <> new.tags OR old.project <> new.project BEGIN
    UPDATE tag_counts SET count = count - 1
    WHERE project = old.project AND tag IN (SELECT value FROM json_each(old.tags));
    INSERT INTO tag_counts SELECT new.project, value, 1 FROM json_each(new.tags) WHERE true
        ON CONFLICT DO UPDATE SET count = count + 1;
    DELETE FROM tag_counts
    WHERE project = old.project AND tag IN (SELECT value FROM json_each(old.tags)) AND count = 0;
END;
