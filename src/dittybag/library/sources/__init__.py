"""Sources of libraries: folders, zip files and Git repositories."""
