-- What is pinned to a project, in order: prompt:ID, resource:ID, task:ID or library:NAME.
ALTER TABLE projects ADD COLUMN pins TEXT NOT NULL DEFAULT '[]';
