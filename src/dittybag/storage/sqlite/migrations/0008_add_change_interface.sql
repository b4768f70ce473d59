-- The interface through which a change was made. NULL for older changes, of which only the actor is known.
ALTER TABLE changes ADD COLUMN interface TEXT CHECK (interface IN ('web', 'cli', 'mcp'));
