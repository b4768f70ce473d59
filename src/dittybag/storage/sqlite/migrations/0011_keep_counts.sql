-- The numbers of prompts and of tags are kept instead of counted.
SELECT 1;
