"""The protocol revisions as tables: versions, methods, fields, and other differences."""
