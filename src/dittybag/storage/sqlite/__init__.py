"""Storage in a SQLite file that any number of processes share."""
