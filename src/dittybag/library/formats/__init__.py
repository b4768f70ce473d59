"""Prompt file formats.

`format_detection` finds the format of a file from its path and is cheap. `format_readers` parses untrusted
text and must run in a child process.
"""
