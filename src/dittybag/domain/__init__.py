"""The domain model: prompts, resources, tasks, projects and changes, independent of protocol and database."""
