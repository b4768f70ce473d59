"""What things are: prompts, resources, tasks, projects and changes, true without protocol or database."""
