"""Dittybag: the prompts, documents and tasks that people and their agents share."""

__version__ = "0.1.0"
