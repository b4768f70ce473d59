"""Prompt libraries: find, parse, watch, render and install prompt files."""
