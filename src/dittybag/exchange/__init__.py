"""Exchange: from the files in which others keep prompts, documents and tasks to ours, and back.

What is read and written are values of the domain. Nothing here decides what becomes of them.
"""
