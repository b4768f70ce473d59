"""Where libraries are installed from: folders and Git repositories."""
