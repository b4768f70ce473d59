-- Each user has a limited number of sessions of each kind, so that nobody can end those of another user.
-- `owner` is the kind and the user. Older sessions have none, and expire.
ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT '';

CREATE INDEX sessions_by_owner ON sessions (owner, used_at);
