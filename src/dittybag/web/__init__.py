"""Pages for people: server-rendered HTML over the same services as everything else."""
