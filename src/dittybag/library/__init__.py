"""Prompt files on disk: find, read, watch and render them."""
