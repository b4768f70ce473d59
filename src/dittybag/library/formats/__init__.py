"""Prompt file formats: detection uses only paths; the readers parse untrusted text in a child process."""
