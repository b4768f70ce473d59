-- A batch of writes is made by one call of a function. SQLite needs none.
SELECT 1;
