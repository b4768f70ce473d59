"""Workspaces in PostgreSQL databases."""
