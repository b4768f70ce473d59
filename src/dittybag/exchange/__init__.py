"""Export of a workspace to files, import from files, and copy from one database to another."""
