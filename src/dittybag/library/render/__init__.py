"""Render and parse untrusted text in child processes."""
