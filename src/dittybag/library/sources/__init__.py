"""Where libraries are installed from: folders, zip archives and Git repositories."""
