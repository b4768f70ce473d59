-- PostgreSQL servers count the requests of a token together, see docs/decisions/0033. On SQLite, each process counts alone.
SELECT 1;
