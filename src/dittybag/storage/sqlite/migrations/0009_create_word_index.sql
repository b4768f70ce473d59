-- The index of the ranked search: the stems of all words, see docs/decisions/0023. The row id is 4 times the number of
-- the entity, plus 0 for a prompt, 1 for a resource and 2 for a task. The program computes the stems and maintains the
-- index, as it does those of trigrams.
CREATE VIRTUAL TABLE word_index USING fts5 (
    name, tags, description, content, content = '', contentless_delete = 1, tokenize = 'ascii'
);
-- Segments are merged later than those of trigrams: a create takes a third of the time, and a search reads few terms.
INSERT INTO word_index (word_index, rank) VALUES ('automerge', 64), ('crisismerge', 256);
-- How many rows each stem occurs in.
CREATE VIRTUAL TABLE word_frequencies USING fts5vocab (word_index, row);
