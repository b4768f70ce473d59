"""The projects of folders and of connections."""
