"""Folders of this machine: the repository that each belongs to, and the project that it is linked to."""
