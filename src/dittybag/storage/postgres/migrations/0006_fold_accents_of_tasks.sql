-- The `folded_...` columns of tasks hold the text without case and without accents. The program fills them, because SQL
-- cannot fold accents as Unicode describes it.
SELECT 1;
