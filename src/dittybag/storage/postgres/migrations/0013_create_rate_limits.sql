-- Servers count the requests of a token together. On SQLite, one process serves HTTP.
SELECT 1;
