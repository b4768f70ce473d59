-- The index of the ranked search, see docs/decisions/0023. `words` has the stems of all words of the searched texts; the
-- position of a stem is 4 times the number of its occurrences in a column, plus the number of the column: 0 for title and
-- name, 1 for tags, 2 for the description, 3 for the content. `word_count` is the number of all words. The program fills
-- these columns, so that stems are the same as on SQLite. It then creates the indexes.
ALTER TABLE prompts ADD COLUMN words tsvector, ADD COLUMN word_count bigint NOT NULL DEFAULT 0;
ALTER TABLE resources ADD COLUMN words tsvector, ADD COLUMN word_count bigint NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN words tsvector, ADD COLUMN word_count bigint NOT NULL DEFAULT 0;
